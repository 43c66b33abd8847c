/* Answers to the questions of an agent. */
#include "speak/internal.h"

#include <stddef.h>

#define AT(member) offsetof(struct speak_input, member)

/* Whether value and confirmed were given is found out separately: false is an
 * answer, and so is an empty text. */
static const struct field input_fields[] = {
    {"input_id", FIELD_NAME, 1, ID_BYTES - 1, .at = AT(input_id),
     .missing = "which question is answered"},
    {"value", FIELD_TEXT, 0, INPUT_VALUE_MAX, .at = AT(answer.value)},
    {"confirmed", FIELD_BOOL, 0, 0, .at = AT(answer.confirmed)},
    {"cancelled", FIELD_BOOL, 0, 0, .at = AT(answer.is_cancelled)},
};

#undef AT

static bool input_member_is_given(struct str raw)
{
    return raw.n && !str_eq(raw, STR("null"));
}

const struct fields speak_input_fields = {
    "", input_fields, sizeof(input_fields) / sizeof(*input_fields)};

enum err speak_input(struct arena *a, struct str body, struct speak_input *out,
                     struct why *why)
{
    static const struct str keys[] = {STR("value"), STR("confirmed")};
    struct str raw[2];
    enum err e;

    *out = (struct speak_input){.input_id = STR("")};
    e = fields_read(a, body, &speak_input_fields, out, why);
    if (e)
        return e;
    if (json_scan(body, keys, 2, raw, NULL) != OK)
        return ERR_SYNTAX; /* it was valid just now */
    out->answer.has_value = input_member_is_given(raw[0]);
    out->answer.has_confirmed = input_member_is_given(raw[1]);
    if (!out->answer.has_value && !out->answer.has_confirmed &&
        !out->answer.is_cancelled)
        return why_err(why, ERR_BAD_REQUEST,
                       "say one of value, confirmed and cancelled");
    return OK;
}
