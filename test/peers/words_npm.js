// What the reference makes of texts: Hugging Face's tokenizers, in Rust. Reads
// and says the same as words_peer.c:
//
//   words_npm.js words
//   words_npm.js ids TOKENIZER.json
//
// Of the tokeniser's file its marks are left out: the reference takes "[SEP]"
// in a text for the mark, and anyone who writes texts should not be able to set
// one. So are cutting, padding, and the marks at both ends.
"use strict";
const fs = require("fs");
const { Tokenizer, bertNormalizer, bertPreTokenizer } =
    require("@anush008/tokenizers");

function* texts() {
    const all = fs.readFileSync(0);

    for (let at = 0; at < all.length;) {
        const n = all.readUInt32LE(at);

        yield all.toString("utf8", at + 4, at + 4 + n);
        at += 4 + n;
    }
}

// The bytes that a long word begins with do not matter.
function shown(word) {
    const chars = Array.from(word);

    return chars.length > 100 ? "~" + chars.slice(0, 100).join("") : word;
}

function words() {
    const normalizer = bertNormalizer({ cleanText: true,
        handleChineseChars: true, stripAccents: true, lowercase: true });
    const splitter = bertPreTokenizer();

    return (text) => splitter
        .preTokenizeString(normalizer.normalizeString(text))
        .map(([word]) => shown(word)).join(" ");
}

function ids(path) {
    const file = JSON.parse(fs.readFileSync(path));

    Object.assign(file, { added_tokens: [], truncation: null, padding: null,
        post_processor: null });
    const tokenizer = Tokenizer.fromString(JSON.stringify(file));

    return async (text) => (await tokenizer.encode(text, null,
        { addSpecialTokens: false })).getIds().join(" ");
}

async function main(what, path) {
    const say = what === "words" ? words() : ids(path);
    const lines = [];

    for (const text of texts())
        lines.push(await say(text) + "\n");
    process.stdout.write(lines.join(""));
}

main(...process.argv.slice(2));
