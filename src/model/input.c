/* A program asks and a client answers. Both sides are checked against the same
 * limits here, so that neither a list of a million options nor a value that was
 * never offered gets any further. */
#include "model/input.h"

#include <string.h>

struct str input_kind_name(enum input_kind k)
{
    static const char *const names[] = {[INPUT_SELECT] = "select",
                                        [INPUT_CONFIRM] = "confirm",
                                        [INPUT_TEXT] = "text",
                                        [INPUT_EDITOR] = "editor"};

    return str_of(names[k]);
}

struct str input_outcome_name(enum input_outcome o)
{
    static const char *const names[] = {
        [INPUT_OPEN] = "open",           [INPUT_ANSWERED] = "answered",
        [INPUT_CANCELLED] = "cancelled", [INPUT_UNHEARD] = "unheard",
        [INPUT_EXPIRED] = "expired",     [INPUT_WITHDRAWN] = "withdrawn"};

    return str_of(names[o]);
}

enum err input_may_be_asked(const struct input_ask *q)
{
    size_t left = INPUT_BYTES_MAX;
    const struct str all[] = {q->title, q->message, q->placeholder, q->prefill,
                              q->handle};

    if (q->n_options > INPUT_OPTIONS_MAX)
        return ERR_LIMIT;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all) + q->n_options; i++) {
        size_t n = i < sizeof(all) / sizeof(*all)
                       ? all[i].n
                       : q->options[i - sizeof(all) / sizeof(*all)].n;

        if (n > left)
            return ERR_LIMIT;
        left -= n;
    }
    return q->kind == INPUT_SELECT && !q->n_options ? ERR_BAD_REQUEST : OK;
}

static bool is_offered(const struct input_ask *q, struct str value)
{
    for (size_t i = 0; i < q->n_options; i++)
        if (str_eq(q->options[i], value))
            return true;
    return false;
}

static enum err check_value(const struct input_ask *q, struct str value,
                            struct why *why)
{
    if (value.n > INPUT_VALUE_MAX)
        return why_err(why, ERR_LIMIT, "value is longer than %d bytes",
                       INPUT_VALUE_MAX);
    if (q->kind == INPUT_SELECT && !is_offered(q, value))
        return why_err(why, ERR_BAD_REQUEST,
                       "value must be exactly one of the options");
    if (q->kind == INPUT_TEXT && str_find(value, '\n', 0) < value.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "value must be one line: a text of several is asked "
                       "for as \"editor\"");
    return OK;
}

enum err input_may_be_answered(const struct input_ask *q,
                               const struct input_answer *a, struct why *why)
{
    bool is_confirm = q->kind == INPUT_CONFIRM;

    if (a->is_cancelled && (a->has_value || a->has_confirmed))
        return why_err(why, ERR_BAD_REQUEST,
                       "cancelled means unanswered: give no value with it");
    if (a->is_cancelled)
        return OK;
    if (a->has_confirmed != is_confirm || a->has_value == is_confirm)
        return why_err(
            why, ERR_BAD_REQUEST,
            "it asks for \"%.*s\", so say %s, or {\"cancelled\":true}",
            STR_ARG(input_kind_name(q->kind)),
            is_confirm ? "\"confirmed\", true or false" : "\"value\", a text");
    return is_confirm ? OK : check_value(q, a->value, why);
}

int64_t input_number(const struct input *in, const struct id *task_id)
{
    if (strcmp(in->root_id.text, task_id->text) == 0)
        return in->number;
    return strcmp(in->task_id.text, task_id->text) == 0 ? in->own_number : 0;
}

static void put_ask(struct json_out *o, const struct input *in)
{
    const struct input_ask *q = &in->ask;

    json_member_str(o, "title", q->title);
    json_member_some(o, "message", q->message);
    if (q->n_options) {
        json_key(o, STR("options"));
        json_open(o, '[');
        for (size_t i = 0; i < q->n_options; i++)
            json_put_str(o, q->options[i]);
        json_close(o, ']');
    }
    json_member_some(o, "placeholder", q->placeholder);
    json_member_some(o, "prefill", q->prefill);
    json_member_int(o, "at_ms", in->at_ms);
    json_member_int(o, "until_ms", in->until_ms);
}

void input_write(struct json_out *o, const struct input *in)
{
    json_open(o, '{');
    json_member_str(o, "input_id", str_of(in->id.text));
    json_member_str(o, "task_id", str_of(in->task_id.text));
    json_member_str(o, "agent", str_of(in->agent));
    json_member_str(o, "kind", input_kind_name(in->ask.kind));
    if (in->outcome == INPUT_OPEN) {
        put_ask(o, in);
    } else {
        json_member_str(o, "outcome", input_outcome_name(in->outcome));
        if (in->by[0])
            json_member_str(o, "by", str_of(in->by));
    }
    json_close(o, '}');
}
