#include "base/json.h"
#include "speak/speak.h"

void speak_error(struct buf *out, enum err e, struct str message,
                 struct str details)
{
    const struct err_row *row = err_row(e);
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_key(&o, STR("error"));
    json_open(&o, '{');
    json_member_text(&o, "code", str_of(row->code));
    json_member_text(&o, "message", message.n ? message : str_of(row->wording));
    json_member_raw(&o, "details", details.n ? details : STR("{}"));
    json_close(&o, '}');
    json_close(&o, '}');
    buf_add_char(out, '\n');
}

void speak_refusal(struct buf *out, enum err e, struct str what)
{
    struct why why = {""};

    if (what.n)
        why_err(&why, e, "%s: %.*s", err_row(e)->wording, STR_ARG(what));
    speak_error(out, e, str_of(why.text), STR(""));
}
