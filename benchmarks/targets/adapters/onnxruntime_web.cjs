// Runs one model in the WebAssembly build: the request is JSON on standard input, the answer a line of JSON.
const ort = require("onnxruntime-web");

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, int8: Int8Array, bool: Uint8Array,
};

function tensor([kind, shape, items]) {
  if (kind === "string") return new ort.Tensor("string", items, shape);
  const value = (item) => (kind === "int64" ? BigInt(item) : kind === "bool" ? Number(item === "True") : Number(item));
  return new ort.Tensor(kind, ARRAYS[kind].from(items, value), shape);
}

async function main() {
  const { model, inputs, outputs } = JSON.parse(require("fs").readFileSync(0, "utf8"));
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "fatal";
  const session = await ort.InferenceSession.create(require("fs").readFileSync(model));
  const feeds = Object.fromEntries(Object.entries(inputs).map(([name, each]) => [name, tensor(each)]));
  const found = await session.run(feeds, outputs);
  return { outputs: outputs.map((name) => [found[name].type, found[name].dims, Array.from(found[name].data, String)]) };
}

main().catch((error) => ({ error: String(error && error.message ? error.message : error) }))
  .then((answer) => console.log(JSON.stringify(answer)));
