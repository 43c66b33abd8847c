/* Whom a rule is for, and walking over those of a section: by the index, which
 * knows which of them could be for a kind and a target; or over all of them
 * where somebody wants to know why each did not fire. */
#include "gate/asked.h"

struct str section_name(enum section s)
{
    static const struct str names[N_SECTIONS] = {
        [SECTION_PRIORITIES] = STR("priorities"),
        [SECTION_DUPLICATES] = STR("duplicates"),
        [SECTION_SUPERSEDING] = STR("superseding"),
        [SECTION_SAFETY_GATES] = STR("safety_gates"),
        [SECTION_ESCALATIONS] = STR("escalations"),
        [SECTION_DEPENDENCIES] = STR("dependencies"),
        [SECTION_FRESHNESS] = STR("freshness"),
        [SECTION_CAPACITY] = STR("capacity"),
        [SECTION_SLA] = STR("sla"),
    };

    return (unsigned)s < N_SECTIONS ? names[s] : STR("");
}

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

bool match_names_messages(const struct match *m)
{
    return match_has(m->type, ENVELOPE_MESSAGE);
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

static bool is_about_others(const struct rule *r, const struct asked *a)
{
    /* What a person says has no reference, and its words are no payload: two
     * messages of theirs are not the same because nothing else differs. */
    if (!a->e->is_message || match_names_messages(&r->match))
        return false;
    return r->section == SECTION_DUPLICATES ||
           r->section == SECTION_SUPERSEDING ||
           r->section == SECTION_DEPENDENCIES ||
           (r->section == SECTION_ESCALATIONS && r->like.n_same);
}

bool rule_is_for(const struct asked *a, const struct rule *r)
{
    return rule_fits(r, a->e, a->pick.priority) && !is_about_others(r, a);
}

static void tell_mismatch(struct asked *a, const struct rule *r)
{
    char text[WHY_MAX];
    struct phrase w = phrase_in(text, sizeof(text));

    if (!rule_fits(r, a->e, a->pick.priority))
        say_mismatch(&w, &r->match, a->e, a->pick.priority);
    else
        phrase_add(&w, STR("a person's message, and it does not name MESSAGE"));
    asked_tell(a, section_name(r->section), r, false, (struct str){w.p, w.n});
}

struct each each_of(struct asked *a, enum section s)
{
    const struct gate_rules *r = a->rules;

    return (struct each){.a = a,
                         .section = s,
                         .walks_all = a->trace || (r->n_rules && !r->index),
                         .at = r->first[s],
                         .end = r->first[s + 1]};
}

const struct rule *each_any(struct each *i)
{
    struct asked *a = i->a;
    const struct rule *r;

    while (!i->walks_all) {
        r = i->has_begun ? rules_next(&a->pick)
                         : rules_first(&a->pick, i->section);
        i->has_begun = true;
        if (!r || !is_about_others(r, a))
            return r;
    }
    while (i->at < i->end) {
        r = &a->rules->rules[i->at++];
        if (rule_is_for(a, r))
            return r;
        if (i->tells)
            tell_mismatch(a, r);
    }
    return NULL;
}

const struct rule *each_match(struct each *i)
{
    i->tells = i->a->trace;
    return each_any(i);
}

const struct rule *each_next(struct each *i)
{
    const struct rule *r;

    while ((r = each_match(i))) {
        enum holds h = rule_holds(i->a, r);

        if (h == HOLDS_YES)
            return r;
        if (h == HOLDS_FAILED && !i->a->unjudged)
            i->a->unjudged = r;
        asked_tell(i->a, section_name(r->section), r, false,
                   h == HOLDS_NO ? STR("its condition does not hold")
                                 : STR("its condition cannot be worked out"));
    }
    return NULL;
}
