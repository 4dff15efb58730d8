// Runs a model in onnxruntime-web: node onnxruntime_web.mjs LIBRARY FOLDER.
// FOLDER has model.onnx and request.json: {"inputs": {name: {type, dims, data}}}. Writes answer.json: {name: the same}.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const arrays = {
  float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array,
  int8: Int8Array, bool: Uint8Array, float16: Uint16Array,
};

function tensor(ort, { type, dims, data }) {
  if (type === "string") return new ort.Tensor(type, data, dims);
  const bytes = new Uint8Array(Buffer.from(data, "base64"));
  return new ort.Tensor(type, new arrays[type](bytes.buffer), dims);
}

function described({ type, dims, data }) {
  if (type === "string") return { type, dims, data };
  return { type, dims, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
}

async function run(library, folder) {
  const ort = await import(pathToFileURL(library));
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "fatal";
  const { inputs } = JSON.parse(readFileSync(`${folder}/request.json`, "utf8"));
  const given = Object.entries(inputs).map(([name, value]) => [name, tensor(ort, value)]);
  const model = readFileSync(`${folder}/model.onnx`);
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const results = Object.entries(await session.run(Object.fromEntries(given)));
  const answer = Object.fromEntries(results.map(([name, value]) => [name, described(value)]));
  writeFileSync(`${folder}/answer.json`, JSON.stringify(answer));
}

try {
  await run(...process.argv.slice(2));
  process.exit(0);
} catch (error) {
  console.log(`${error.message ?? error}`);
  process.exit(1);
}
