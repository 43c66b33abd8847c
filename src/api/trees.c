/* The list of trees, newest first: one page of roots from an index, and then
 * each tree as tree.c reads it, one after the other, of which only sums are
 * kept. A page ends at its limit or after PAGE_TASKS tasks, so large trees make
 * it shorter. The index knows user and time; agent and status are known once a
 * tree is read, so a page of few trees may need many reads. */
#include "api/tree_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "delegation/delegation.h"

enum {
    PAGE_TASKS = 1000, /* a page ends after these tasks */
    ROOTS_MAX = 500,   /* as call_limit */
};

struct tree_page {
    struct id roots[ROOTS_MAX];
    size_t n_roots, at;
    bool has_more;
    size_t n_tasks;                 /* tasks that were read */
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

static void trees_answer(struct request *o)
{
    struct tree_page *p = tree_of(o)->page;
    bool has_more = p->has_more || p->at < p->n_roots;

    speak_list_close(&p->out, has_more && p->at
                                  ? str_of(p->roots[p->at - 1].text)
                                  : STR(""));
    if (p->text.over) {
        request_fail(o, ERR_NOMEM);
        return;
    }
    buf_add_str(&o->api->body, buf_str(&p->text));
    request_answer(o, 200);
}

static void trees_read_next(struct request *o);

/* By the part that the caller sees. */
static bool tree_passes_filter(const struct tree_look *l,
                               const struct tree_task *root)
{
    const struct tree_page *p = l->page;
    bool has_agent = !p->agent[0];

    for (size_t i = 0; i < l->n && !has_agent; i++)
        has_agent = l->list[i].is_asked_for &&
                    str_eq_nocase(l->list[i].t.agent, str_of(p->agent));
    return has_agent && (!p->status || root->t.status == p->status);
}

/* A tree without a root, because retention removed it, is left out. */
static void on_tree_read(struct request *o)
{
    struct tree_look *l = o->own;
    struct tree_page *p = l->page;
    int root = tree_place_of(l, l->root.text);
    struct speak_tree tree = {.list = l->list,
                              .n = l->n,
                              .root_id = str_of(l->root.text),
                              .is_whole = true,
                              .is_cut = l->is_cut,
                              .now_ms = loop_wall_ms(o->api->loop)};

    if (root >= 0 && l->list[root].is_asked_for &&
        tree_passes_filter(l, &l->list[root])) {
        tree_link(l->list, l->n);
        tree.top = (size_t)root;
        speak_tree_item(&p->out, &tree);
    }
    p->n_tasks += l->n_ids;
    p->at++;
    trees_read_next(o);
}

static void trees_read_next(struct request *o)
{
    struct tree_page *p = tree_of(o)->page;

    if (p->at == p->n_roots || p->n_tasks >= PAGE_TASKS ||
        p->text.n > PAGE_BYTES)
        trees_answer(o);
    else
        tree_read(o, str_of(p->roots[p->at].text), STR(""), on_tree_read);
}

static void on_tree_roots(struct request *o)
{
    struct tree_page *p = tree_of(o)->page;

    if (!request_query_ok(o))
        return;
    p->has_more = o->query.has_more;
    QUERY_EACH(r, &o->query)
    if (p->n_roots < ROOTS_MAX)
        p->roots[p->n_roots++] = id_from(row_str(r, TREE_ROOT_ID));
    trees_read_next(o);
}

/* The filter, read before the request is opened. */
struct tree_filter {
    struct str cursor, agent, user;
    enum task_status status;
    int64_t since_ms;
    size_t limit;
};

static bool trees_read_filter(struct call *c, struct tree_filter *f)
{
    *f = (struct tree_filter){.cursor = call_arg(c, "cursor"),
                              .agent = call_arg(c, "agent"),
                              .user = call_arg(c, "user"),
                              .status = task_status_of(call_arg(c, "status")),
                              .since_ms = call_int(c, "since", 0),
                              .limit = call_limit(c)};
    return !f->cursor.p || id_is_valid(f->cursor, "task") ||
           call_bad_request(c, "cursor must be a next_cursor of this list");
}

/* Trees of others are for admins. A task's id starts with its time, so ids are
 * in the order of time. */
static void trees_add_filter(struct call *c, struct query *q,
                             const struct tree_filter *f)
{
    struct access_user found;
    struct str user = f->user;

    if (user.p && access_user_find(c->api->access, user, &found))
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
    struct tree_page *p;
    struct tree_filter f;
    struct request *o;

    if (!trees_read_filter(c, &f))
        return;
    o = tree_request_of_call(c);
    if (!o)
        return;
    p = tree_of(o)->page = mem_new(sizeof(*p));
    buf_init(&p->text, 2 * PAGE_BYTES);
    p->out = json_out(&p->text);
    speak_list_open(&p->out);
    p->status = f.status;
    snprintf(p->agent, sizeof(p->agent), "%.*s", STR_ARG(f.agent));
    request_query(o, &tree_table, f.limit);
    trees_add_filter(c, &o->query, &f);
    request_read_list(o, &o->query, on_tree_roots);
}
