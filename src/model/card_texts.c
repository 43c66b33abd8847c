/* The texts whose vectors represent an agent and a skill. The form is that of
 * profile.h, which was measured; tags follow it as separate words, as in seed
 * 000.
 *
 * Models read only the beginning (all-MiniLM-L6-v2: 256 tokens), so the most
 * telling part comes first: for routing, the keywords come before a prompt that
 * may be long. */
#include "model/card.h"
#include "model/profile.h"

/* Like profile_add, but the head was written by people: its words are not
 * split. */
static void card_add_pair(struct buf *out, struct str head,
                          struct str description)
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

static void card_add_list(struct buf *out, struct strs words)
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
        card_add_pair(out, a->title, a->description);
    else
        profile_add(out, a->name, a->description);
}

void card_routing_text(struct buf *out, const struct agent *a)
{
    card_search_text(out, a);
    card_add_list(out, a->routing.keywords);
    card_add_list(out, (struct strs){&a->routing.system_prompt,
                                     a->routing.system_prompt.n > 0});
}

/* A name that equals the id was written for machines. */
void card_skill_text(struct buf *out, const struct skill *s)
{
    if (str_eq(s->name, s->id))
        profile_add(out, s->name, s->description);
    else
        card_add_pair(out, s->name, s->description);
    card_add_list(out, s->tags);
}
