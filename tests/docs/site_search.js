// Type queries into the search of a built site, as a browser does: node site_search.js SITE QUERY...
// Prints the pages that each finds, the first one first, as JSON.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const read = (...names) => fs.readFileSync(path.join(site, ...names), "utf8");
const workers = path.join("assets", "javascripts", "workers");
const script = fs.readdirSync(path.join(site, workers)).find((name) => /^search.*\.js$/.test(name));

let listener;
let answer;
const inside = { console: { warn() {} }, Intl, addEventListener: (kind, called) => (listener = called) };
inside.self = inside;
inside.postMessage = (message) => answer(message);
vm.runInNewContext(read(workers, script), inside);

class Worker {
  postMessage(message) {
    listener({ data: message });
  }
}
vm.runInNewContext(read("assets", "search-options.js"), { Worker });
const worker = new Worker();
const ask = (message) => new Promise((resolve) => ((answer = resolve), worker.postMessage(message)));

(async () => {
  const index = JSON.parse(read("search", "search_index.json"));
  await ask({ type: 0, data: { ...index, options: {} } });
  const found = {};
  for (const query of queries) {
    const { data } = await ask({ type: 2, data: query });
    found[query] = data.items.map((page) => page[0].location);
  }
  console.log(JSON.stringify(found));
})();
