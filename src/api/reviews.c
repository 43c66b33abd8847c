/* Review of cards by admins, and reports of users. registry/review.c decides
 * which card is used meanwhile. */
#include "api/internal.h"

static void on_review_committed(struct request *o)
{
    struct api *c = o->api;
    struct eyes eyes = eyes_of(&o->caller, loop_wall_ms(c->loop));
    const struct registry_change *made = o->own;
    struct str name = str_of(made->name);
    const struct agent *a = registry_find(c->registry, name, &eyes);
    struct json_out out = request_json(o);

    if (!a) { /* removed by another request meanwhile */
        request_refuse_agent(o, name);
        return;
    }
    write_agent(c, &out, a, &eyes, NULL, NULL);
    request_answer(o, 200);
}

static void review_refuse_change(struct request *o, struct str name, enum err e,
                                 const struct why *why)
{
    if (e == ERR_NOT_FOUND) {
        request_refuse_agent(o, name);
    } else {
        request_refuse(o, e, str_of(why->text), STR(""));
    }
}

static void review_submit(struct call *c, enum review_verdict verdict)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct speak_review said;
    struct why why = {""};
    struct request *o;
    enum err e = speak_review(&c->api->scratch, c->rq->body,
                              verdict == REVIEW_APPROVE ? SPEAK_APPROVAL
                                                        : SPEAK_OBJECTION,
                              &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    by.if_revision = said.revision;
    o = change_begin(c);
    if (!o)
        return;
    e = registry_judge(c->api->registry, o->own, c->param, verdict, said.reason,
                       &by, &why);
    if (e)
        review_refuse_change(o, c->param, e, &why);
    else
        change_submit(o, on_review_committed);
}

void call_agents_approve(struct call *c)
{
    review_submit(c, REVIEW_APPROVE);
}

void call_agents_reject(struct call *c)
{
    review_submit(c, REVIEW_REJECT);
}

void call_agents_hide(struct call *c)
{
    review_submit(c, REVIEW_HIDE);
}

/* Reports. */

void call_agents_report(struct call *c)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct speak_review said;
    struct why why = {""};
    struct request *o;
    enum err e =
        speak_review(&c->api->scratch, c->rq->body, SPEAK_REPORT, &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    o = change_begin(c);
    if (!o)
        return;
    e = registry_report(c->api->registry, o->own, c->param, said.reason, &by,
                        &why);
    if (e)
        review_refuse_change(o, c->param, e, &why);
    else
        change_submit(o, request_answer_nothing);
}

void call_agents_reports(struct call *c)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->api->registry, c->param, &eyes);
    struct registry_report list[REPORTS_PER_AGENT];
    struct json_out out = json_out(c->body);
    size_t n;

    if (!a) {
        call_refuse_agent(c, c->param);
        return;
    }
    n = registry_reports(c->api->registry, a, list, REPORTS_PER_AGENT);
    speak_list_open(&out);
    for (size_t i = 0; i < n; i++) {
        json_open(&out, '{');
        json_member_text(&out, "agent", list[i].agent);
        json_member_text(&out, "user", list[i].user);
        json_member_text(&out, "reason", list[i].reason);
        json_member_int(&out, "at_ms", list[i].at_ms);
        json_close(&out, '}');
    }
    speak_list_close(&out, STR(""));
    call_answer_json(c, 200);
}

void call_agents_dismiss(struct call *c)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct why why = {""};
    struct request *o;
    enum err e;

    if (!call_has_no_body(c))
        return;
    o = change_begin(c);
    if (!o)
        return;
    e = registry_dismiss_reports(c->api->registry, o->own, c->param, &by, &why);
    if (e)
        review_refuse_change(o, c->param, e, &why);
    else
        change_submit(o, request_answer_nothing);
}
