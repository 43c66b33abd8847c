/* Iterating over the rules of a section that are for an envelope: by the index,
 * or over all of them when a trace wants to know why each rule did not fire. */
#include "gate/rules/evaluation.h"

bool match_has(struct strs list, struct str s)
{
    for (size_t i = 0; i < list.n; i++)
        if (str_eq(list.list[i], s))
            return true;
    return false;
}

bool match_has_name(struct strs list, struct str s)
{
    for (size_t i = 0; i < list.n; i++)
        if (list.list[i].n == s.n && str_eq_nocase(list.list[i], s))
            return true;
    return false;
}

/* "type is REQUEST, not SUBMISSION or OFFER". */
static bool say_other(struct phrase *w, struct str field, struct str is,
                      struct strs wanted, bool is_name)
{
    if (!wanted.n ||
        (is_name ? match_has_name(wanted, is) : match_has(wanted, is)))
        return false;
    SAY(w, field, STR(" is "), is, STR(", not "));
    for (size_t i = 0; i < wanted.n; i++)
        SAY(w, i ? STR(" or ") : STR(""), wanted.list[i]);
    return true;
}

static void say_mismatch(struct phrase *w, const struct match *m,
                         const struct envelope *e, enum task_priority p)
{
    if (say_other(w, STR("type"), e->type, m->type, false) ||
        say_other(w, STR("to"), e->to, m->to, true) ||
        say_other(w, STR("from"), e->from, m->from, true))
        return;
    SAY(w, STR("priority is "), task_priority_name(p));
}

static bool skips_messages(const struct rule *r, const struct evaluation *ev)
{
    /* A person's message has no reference and no payload, so two of them would
     * count as the same because nothing else differs. */
    if (!ev->e->is_message || match_has(r->match.type, ENVELOPE_MESSAGE))
        return false;
    return r->section == SECTION_DUPLICATES ||
           r->section == SECTION_SUPERSEDING ||
           r->section == SECTION_DEPENDENCIES ||
           (r->section == SECTION_ESCALATIONS && r->like.n_same);
}

bool rule_is_for(const struct evaluation *ev, const struct rule *r)
{
    return rule_fits(r, ev->e, ev->pick.priority) && !skips_messages(r, ev);
}

static void trace_mismatch(struct evaluation *ev, const struct rule *r)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    if (!rule_fits(r, ev->e, ev->pick.priority))
        say_mismatch(&w, &r->match, ev->e, ev->pick.priority);
    else
        phrase_add(&w, STR("a person's message, and it does not name MESSAGE"));
    eval_trace(ev, section_name(r->section), r, false, (struct str){w.p, w.n});
}

struct each each_of(struct evaluation *ev, enum section s)
{
    const struct gate_rules *r = ev->rules;

    return (struct each){.ev = ev,
                         .section = s,
                         .walks_all = ev->trace || (r->n_rules && !r->index),
                         .at = r->first[s],
                         .end = r->first[s + 1]};
}

const struct rule *each_any(struct each *i)
{
    struct evaluation *ev = i->ev;
    const struct rule *r;

    while (!i->walks_all) {
        r = i->has_begun ? rules_next(&ev->pick)
                         : rules_first(&ev->pick, i->section);
        i->has_begun = true;
        if (!r || !skips_messages(r, ev))
            return r;
    }
    while (i->at < i->end) {
        r = &ev->rules->rules[i->at++];
        if (rule_is_for(ev, r))
            return r;
        if (i->tells)
            trace_mismatch(ev, r);
    }
    return NULL;
}

const struct rule *each_match(struct each *i)
{
    i->tells = i->ev->trace;
    return each_any(i);
}

const struct rule *each_next(struct each *i)
{
    const struct rule *r;

    while ((r = each_match(i))) {
        enum holds h = rule_holds(i->ev, r);

        if (h == HOLDS_YES)
            return r;
        if (h == HOLDS_FAILED && !i->ev->unjudged)
            i->ev->unjudged = r;
        eval_trace(i->ev, section_name(r->section), r, false,
                   h == HOLDS_NO ? STR("its condition does not hold")
                                 : STR("its condition cannot be evaluated"));
    }
    return NULL;
}
