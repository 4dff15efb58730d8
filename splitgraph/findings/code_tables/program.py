"""How the program was called, and what is wrong with its installation."""

from __future__ import annotations

from splitgraph.findings.code_tables.code_info import CodeInfo

# 6xx: how the program was called
CALLS = {
    "SG601": CodeInfo(
        "argument not allowed",
        "A command line argument has the wrong form, or contradicts another argument.",
        "The message says what is allowed. --help lists the arguments.",
    ),
    "SG602": CodeInfo(
        "not enough resources",
        "The machine lacked memory or space for temporary files, or the operating system refused another request.",
        "The message names the missing resource.",
    ),
    "SG603": CodeInfo(
        "fault of splitgraph",
        "splitgraph failed in an unexpected way. No model should cause this.",
        "Please report the bug with the model. The environment variable SPLITGRAPH_DEBUG=1 shows a traceback.",
    ),
    "SG604": CodeInfo(
        "process of a model ended",
        "With many models, the process that worked on this one ended before it had a result, twice: a crash, or a "
        "lost worker.",
        "Run the command for this model alone; please report a crash of splitgraph with the model.",
    ),
    "SG605": CodeInfo(
        "time limit exceeded",
        "With many models, this one took longer than --timeout allows. Its process was ended; nothing was written.",
        "Give more time with --timeout, or leave the model out with --exclude.",
    ),
    "SG606": CodeInfo(
        "acceptance that nothing needs",
        "An error was accepted by name, but the model has no such error.",
        "Remove the acceptance from the call or from pyproject.toml, or correct its location.",
    ),
}

# 8xx: the installation
INSTALLATION = {
    "SG801": CodeInfo(
        "engine that does not work",
        "The package of an engine is installed, but the engine cannot be imported, crashes, hangs, or runs no Split.",
        "The message says what failed. Install the package of the engine again, in a version for this Python and "
        "machine.",
    ),
    "SG802": CodeInfo(
        "package missing or too old",
        "A package that splitgraph requires is missing, or an installed package is older than splitgraph supports.",
        "Install the newest version of the package with pip.",
    ),
    "SG803": CodeInfo(
        "folder that cannot be written to",
        "splitgraph cannot write to a folder that it needs: the folder is missing, full or read-only.",
        "Free space, or set TMPDIR (on Windows TEMP) to another folder for temporary files.",
    ),
}
