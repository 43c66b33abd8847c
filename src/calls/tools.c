/* The tools that a model is offered so that it gives work to other agents: for
 * people who run their own, to hand on to their provider as it is. What they
 * then call goes to POST /api/delegate and GET /api/agents/search. */
#include "calls/internal.h"
#include "wire/wire.h"

static void write_both(struct json_out *o)
{
    json_open(o, '{');
    json_key(o, STR("openai"));
    wire_tools(o, WIRE_OPENAI);
    json_key(o, STR("anthropic"));
    wire_tools(o, WIRE_ANTHROPIC);
    json_close(o, '}');
}

void call_tools_get(struct call *c)
{
    struct str format = call_arg(c, "format");
    struct json_out o = json_out(c->body);

    if (!format.p) {
        write_both(&o);
    } else if (str_eq(format, STR("openai"))) {
        wire_tools(&o, WIRE_OPENAI);
    } else if (str_eq(format, STR("anthropic"))) {
        wire_tools(&o, WIRE_ANTHROPIC);
    } else {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("format must be \"openai\" or \"anthropic\"; without "
                        "it the answer has both"));
        return;
    }
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}
