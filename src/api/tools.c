/* The tools with which a model delegates to other agents, for people who run
 * their own model and pass them to their provider. Tool calls then go to POST
 * /api/delegate and GET /api/agents/search. */
#include "api/internal.h"
#include "wire/wire.h"

void call_tools_get(struct call *c)
{
    struct str format = call_arg(c, "format");
    struct json_out o = json_out(c->body);

    if (!format.p) {
        json_open(&o, '{');
        json_key(&o, STR("openai"));
        wire_tools(&o, WIRE_OPENAI);
        json_key(&o, STR("anthropic"));
        wire_tools(&o, WIRE_ANTHROPIC);
        json_close(&o, '}');
    } else if (str_eq(format, STR("openai"))) {
        wire_tools(&o, WIRE_OPENAI);
    } else {
        wire_tools(&o, WIRE_ANTHROPIC);
    }
    call_answer_json(c, 200);
}
