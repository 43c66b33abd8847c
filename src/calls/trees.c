/* The list of trees, the newest first: one page of roots along an index, and
 * then each tree as tree.c reads it, one after the other, of which only sums
 * are kept. A page is as long as was asked for, or as so many tasks are: large
 * trees make it shorter, and it goes on behind the last. Whose it is and since
 * when is a matter of the index; who took part and how it stands is known once
 * a tree is read, so that a page of few may be of many that were looked at. */
#include "calls/tree_look.h"

#include <stdio.h>
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
    size_t n_tasks;                 /* that were looked at */
    enum task_status status;        /* of the root; zero: any */
    char agent[AGENT_NAME_MAX + 1]; /* of any of its tasks; empty: any */
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

/* By what the caller sees of it. */
static bool is_wanted(const struct tree_look *l, const struct tree_task *root)
{
    const struct tree_page *p = l->page;
    bool has_agent = !p->agent[0];

    for (size_t i = 0; i < l->n && !has_agent; i++)
        has_agent = l->list[i].is_asked_for &&
                    str_eq_nocase(l->list[i].t.agent, str_of(p->agent));
    return has_agent && (!p->status || root->t.status == p->status);
}

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

    if (root >= 0 && l->list[root].is_asked_for &&
        is_wanted(l, &l->list[root])) {
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

/* What was asked for, before anything is opened. */
struct tree_filter {
    struct str cursor, agent, user;
    enum task_status status;
    int64_t since_ms;
    size_t limit;
};

static bool read_filter(struct call *c, struct tree_filter *f)
{
    struct str since = call_arg(c, "since");
    const char *bad = NULL;

    *f = (struct tree_filter){.cursor = call_arg(c, "cursor"),
                              .agent = call_arg(c, "agent"),
                              .user = call_arg(c, "user")};
    if (!call_limit(c, &f->limit) || !call_status(c, &f->status))
        return false;
    if (f->cursor.p && !id_is_valid(f->cursor, "task"))
        bad = "cursor must be a next_cursor of this list";
    else if (f->agent.n > AGENT_NAME_MAX)
        bad = "agent must be the name of one";
    else if (since.p &&
             (str_to_i64(since, &f->since_ms) != OK || f->since_ms < 0))
        bad = "since must be Unix time in milliseconds";
    if (bad)
        call_refuse(c, ERR_BAD_REQUEST, str_of(bad));
    return !bad;
}

/* Others' are for admins to ask for. A task's id begins with when it was made:
 * so by id is by time. */
static void add_filter(struct call *c, struct query *q,
                       const struct tree_filter *f)
{
    struct access_user found;
    struct str user = f->user;

    if (user.p && access_user_find(c->calls->access, user, &found))
        user = str_of(found.name);
    if (!caller_is_admin(&c->caller))
        query_if(q, TREE_ROOT_USER, IS, value_text(caller_name(&c->caller)));
    if (user.p)
        query_if(q, TREE_ROOT_USER, IS, value_text(user));
    if (f->cursor.p)
        query_if(q, TREE_ROOT_ID, IS_LESS, value_text(f->cursor));
    if (f->since_ms)
        query_if(q, TREE_ROOT_ID, IS_AT_LEAST,
                 value_text(str_of(id_first("task", f->since_ms).text)));
    query_order(q, TREE_ROOT_ID, true);
}

void call_trees_list(struct call *c)
{
    struct tree_filter f;
    struct open *o;

    if (!read_filter(c, &f))
        return;
    o = open_new(c);
    if (!o || !begin(o))
        return;
    o->tree->page->status = f.status;
    snprintf(o->tree->page->agent, sizeof(o->tree->page->agent), "%.*s",
             STR_ARG(f.agent));
    query_init(&o->query, &tree_table, f.limit);
    o->has_query = true;
    add_filter(c, &o->query, &f);
    open_list(o, &o->query, on_roots);
}
