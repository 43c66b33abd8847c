"""Answers against the shapes of GET /openapi.json.

    shapes = Shapes(server.get("/openapi.json").json())
    shapes.wrong("GET", "/api/me", response)    # None, or what is wrong
    shapes.unseen()                             # operations without an answer

Clients must ignore members that they do not know, so the document allows them.
Here they are errors: a member that no shape has is one that is not written down.
"""
import json
import re

import jsonschema


def strict(schema):
    """It again, without members that it does not name."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {k: strict(v) for k, v in schema.items()}
    if isinstance(made.get("properties"), dict) and "type" in made:
        made.setdefault("additionalProperties", False)
    return made


class Shapes:
    def __init__(self, document):
        self.document = document
        self.components = strict(document["components"])
        self.seen = set()
        self.judges = {}
        self.operations = sorted(
            ((path, method.upper(), operation)
             for path, item in document["paths"].items()
             for method, operation in item.items()),
            key=lambda x: x[0].count("{"))  # /search before /{name}

    def operation(self, method, path):
        path = path.partition("?")[0]
        for pattern, verb, operation in self.operations:
            if verb == method and re.fullmatch(
                    re.sub(r"\{\w+\}", "[^/]+", pattern), path):
                return operation
        raise AssertionError(f"{method} {path} is not in the document")

    def judge(self, schema):
        key = json.dumps(schema)
        if key not in self.judges:
            self.judges[key] = jsonschema.Draft202012Validator(
                {**strict(schema), "components": self.components})
        return self.judges[key]

    def wrong(self, method, path, response):
        operation = self.operation(method, path)
        answers = operation["responses"]
        answer = answers.get(str(response.status))
        if answer is None:
            if response.status < 400:
                return f"status {response.status} is not in the document"
            answer = self.document["components"]["responses"]["Error"]
        else:
            self.seen.add(operation["operationId"])
        content = answer.get("content")
        if not content:
            return f"a body: {response.body!r}" if response.body else None
        kind = response.headers.get("content-type", "").partition(";")[0]
        if kind not in content:
            return f"{kind or 'no type'} is none of {sorted(content)}"
        if kind != "application/json":
            return None
        errors = self.judge(content[kind]["schema"]).iter_errors(
            response.json())
        worst = jsonschema.exceptions.best_match(errors)
        return worst and f"{list(worst.absolute_path)}: {worst.message}"

    def unseen(self):
        return {o["operationId"] for _, _, o in self.operations} - self.seen
