// GET /openapi.json as others read it:
//
//   openapi_npm.mjs validate FILE        the schema of OpenAPI 3.1 itself
//   openapi_npm.mjs send URL TOKEN TEXT  a client that is generated from it
//                                        sends TEXT to the agent echo
//
// Says what it found as one line of JSON.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import clients from "openapi-client-axios";

async function validate(file) {
    const validator = new Validator();
    const found = await validator.validate(
        JSON.parse(readFileSync(file, "utf8")));

    return { ...found, version: validator.version };
}

async function send(url, token, text) {
    const OpenAPIClientAxios = clients.OpenAPIClientAxios ?? clients.default;
    const api = new OpenAPIClientAxios({
        definition: url + "/openapi.json",
        withServer: { url },
        axiosConfigDefaults: { headers: { Authorization: "Bearer " + token } },
    });
    const client = await api.init();
    const sent = await client.messages_post(null, {
        text, executor: { name: "echo" },
    });
    const task = await client.tasks_get(sent.data.task_id);
    const listed = await client.tasks_list({ limit: 1, agent: "echo" });

    return {
        status: sent.status, text: sent.data.text,
        task: task.data.id === sent.data.task_id && task.data.result.text,
        listed: listed.data.items.map((one) => one.id),
        operations: api.getOperations().length,
    };
}

const [what, ...rest] = process.argv.slice(2);
console.log(JSON.stringify(await { validate, send }[what](...rest)));
