"""Makes worker processes faulty, which find this module on their path: a model's name says what happens to it.

Python imports a module of this name at its start.
"""

import os
import signal
import sys
import time

if any("splitgraph.many.job" in each for each in sys.orig_argv) or os.environ.get("SPLITGRAPH_FAULTY_HERE"):
    from splitgraph.many import job as jobs

    done = jobs._outcome

    def faulty(job, work):
        name = os.path.basename(job.model)
        if name.startswith("crash"):
            os.kill(os.getpid(), signal.SIGSEGV)
        elif name.startswith("hang"):
            time.sleep(1000)
        elif name.startswith("deaf"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        elif name.startswith("greedy"):
            bytearray(2**34)
        elif name.startswith("fault"):
            raise RuntimeError("a fault")
        elif name.startswith("once"):
            # The first process that meets this model does the work, and dies before it can tell.
            trace = job.model + ".died"
            outcome = done(job, work)
            if not os.path.exists(trace):
                open(trace, "w").close()
                print("this is why", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            return outcome
        return done(job, work)

    jobs._outcome = faulty
