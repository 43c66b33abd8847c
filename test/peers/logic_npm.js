// What the reference makes of rules: json-logic-js. Reads and says the same as
// logic_peer.c; "threw" where it throws.
"use strict";
const fs = require("fs");
const jsonLogic = require("json-logic-js");

function said(line) {
    const [rule, data] = JSON.parse(line);

    try {
        const value = jsonLogic.apply(rule, data);

        return JSON.stringify(value === undefined ? null : value);
    } catch (e) {
        return "threw";
    }
}

console.log = () => {}; // which its `log` calls
const lines = fs.readFileSync(0, "utf8").split("\n").slice(0, -1);

process.stdout.write(lines.map((line) => said(line) + "\n").join(""));
