/* The list of trees, the newest first: one page of roots along an index, and
 * then each tree as tree.c reads it, one after the other, of which only sums
 * are kept. A page is as long as was asked for, or as so many tasks are: large
 * trees make it shorter, and it goes on behind the last. */
#include "calls/tree_look.h"

#include <stdlib.h>

#include "base/fault.h"
#include "hire/hire.h"

enum {
    PAGE_TASKS = 1000, /* no further tree after so many tasks */
    ROOTS_MAX = 500,   /* as call_limit's */
};

struct tree_page {
    struct id roots[ROOTS_MAX];
    size_t n_roots, at;
    bool has_more;
    size_t n_tasks; /* that were looked at */
    struct buf text;
    struct json_out out;
};

void tree_page_free(struct tree_page *p)
{
    if (p)
        buf_fini(&p->text);
    free(p);
}

static struct tree_page *page_new(void)
{
    struct tree_page *p =
        FAULT("calls.trees") ? NULL : calloc(1, sizeof(struct tree_page));

    if (!p)
        return NULL;
    buf_init(&p->text, 2 * PAGE_BYTES);
    p->out = json_out(&p->text);
    speak_list_open(&p->out);
    return p;
}

static void answer(struct open *o)
{
    struct tree_page *p = o->tree->page;
    bool has_more = p->has_more || p->at < p->n_roots;

    speak_list_close(&p->out, has_more && p->at
                                  ? str_of(p->roots[p->at - 1].text)
                                  : STR(""));
    if (p->text.over) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    buf_add_str(&o->calls->body, buf_str(&p->text));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void next_tree(struct open *o);

/* One whose root retention has taken is none any more. */
static void on_tree(struct open *o)
{
    struct tree_look *l = o->tree;
    struct tree_page *p = l->page;
    int root = tree_place_of(l, l->root.text);
    struct speak_tree tree = {.list = l->list,
                              .n = l->n,
                              .root_id = str_of(l->root.text),
                              .is_whole = true,
                              .is_cut = l->is_cut,
                              .now_ms = loop_wall_ms(o->calls->loop)};

    if (root >= 0 && l->list[root].is_asked_for) {
        tree_link(l->list, l->n);
        tree.top = (size_t)root;
        speak_tree_item(&p->out, &tree);
    }
    p->n_tasks += l->n_ids;
    p->at++;
    next_tree(o);
}

static void next_tree(struct open *o)
{
    struct tree_page *p = o->tree->page;

    if (p->at == p->n_roots || p->n_tasks >= PAGE_TASKS ||
        p->text.n > PAGE_BYTES)
        answer(o);
    else
        tree_read(o, str_of(p->roots[p->at].text), STR(""), on_tree);
}

static void on_roots(struct open *o)
{
    struct tree_page *p = o->tree->page;

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    p->has_more = o->query.has_more;
    QUERY_EACH(r, &o->query)
    if (p->n_roots < ROOTS_MAX)
        p->roots[p->n_roots++] = id_from(row_str(r, TREE_ROOT_ID));
    next_tree(o);
}

static bool begin(struct open *o)
{
    if (!tree_look_begin(o))
        return false;
    o->tree->page = page_new();
    if (o->tree->page)
        return true;
    open_refuse(o, ERR_NOMEM, STR(""), STR(""));
    return false;
}

/* A task's id begins with when it was made: so by id is by time. */
void call_trees_list(struct call *c)
{
    struct str cursor = call_arg(c, "cursor");
    struct open *o;
    size_t limit;

    if (!call_limit(c, &limit))
        return;
    if (cursor.p && !id_is_valid(cursor, "task")) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("cursor must be a next_cursor of this list"));
        return;
    }
    o = open_new(c);
    if (!o || !begin(o))
        return;
    query_init(&o->query, &tree_table, limit);
    o->has_query = true;
    if (!caller_is_admin(&c->caller))
        query_if(&o->query, TREE_ROOT_USER, IS,
                 value_text(caller_name(&c->caller)));
    if (cursor.p)
        query_if(&o->query, TREE_ROOT_ID, IS_LESS, value_text(cursor));
    query_order(&o->query, TREE_ROOT_ID, true);
    open_list(o, &o->query, on_roots);
}
