// Starts the page of a model.

const page = new Page(JSON.parse(byId("data").textContent));
enableControls(page);
enableKeys(page);
enablePrinting(page);
// For tests and benchmarks: the moment at which the first drawing was in the document.
performance.mark("splitgraph-drawn");
document.documentElement.dataset.ready = "true";
