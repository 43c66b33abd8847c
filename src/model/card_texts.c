/* What stands for an agent and for a skill in the space of meanings. The form
 * is profile.h's, which was measured; tags come behind it as words of their
 * own, as seed 000 has them.
 *
 * Models read only so far (all-MiniLM-L6-v2: 256 pieces), so what tells most
 * comes first: of routing the keywords, before a prompt that may be long. */
#include "model/card.h"
#include "model/profile.h"

/* As profile_add, with a head that people wrote: no words to take apart. */
static void add(struct buf *out, struct str head, struct str description)
{
    size_t from = out->n;

    buf_add_str(out, head);
    description = str_trim(description);
    if (!description.n || str_eq_nocase(head, description))
        return;
    if (out->n > from)
        buf_add_str(out, STR(": "));
    buf_add_str(out, description);
}

static void add_words(struct buf *out, struct strs words)
{
    for (size_t i = 0; i < words.n; i++) {
        if (out->n)
            buf_add_char(out, ' ');
        buf_add_str(out, words.list[i]);
    }
}

void card_search_text(struct buf *out, const struct agent *a)
{
    if (a->title.n)
        add(out, a->title, a->description);
    else
        profile_add(out, a->name, a->description);
}

void card_routing_text(struct buf *out, const struct agent *a)
{
    card_search_text(out, a);
    add_words(out, a->routing.keywords);
    add_words(out, (struct strs){&a->routing.system_prompt,
                                 a->routing.system_prompt.n > 0});
}

/* A name that is the id again was written for machines. */
void card_skill_text(struct buf *out, const struct skill *s)
{
    if (str_eq(s->name, s->id))
        profile_add(out, s->name, s->description);
    else
        add(out, s->name, s->description);
    add_words(out, s->tags);
}
