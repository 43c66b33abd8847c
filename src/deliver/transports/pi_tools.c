/* The tools offered to pi: the same as for models, with the same calls.
 *
 *     the server                          pi
 *     --extension, a file of ours      ->       when it starts
 *                                      <- extension_ui_request {id, method:
 *                                           input, title: signalbox.tool,
 *                                           placeholder: {tool, arguments}}
 *     extension_ui_response {id, value} ->
 *
 * The file is a sealed memfd that every pi inherits: it needs no folder that
 * the program can see, and it is read-only. It is made once, from the list of
 * tools and pi_tools.js.
 *
 * Errors of a call go to the model. A call ends with its task; the delegation
 * module decides about running delegations. */
#include "deliver/transports/pi.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_BYTES = 64 * 1024, WORDS_BYTES = 4096 };

/* pi_tools_data.c */
extern const char pi_tools_begin[], pi_tools_end[];

/* The file. */

static void pi_tools_write(struct buf *out)
{
    struct json_out o = json_out(out);

    buf_add_str(out, STR("const tools = "));
    wire_tools(&o, WIRE_PI);
    buf_add_str(out, STR(";\n"));
    buf_add(out, pi_tools_begin,
            (size_t)((uintptr_t)pi_tools_end - (uintptr_t)pi_tools_begin));
}

/* Zero: memory or descriptors ran out. */
static int pi_tools_make_file(void)
{
    struct buf text;
    int fd = FAULT("deliver.pi_tools_file")
                 ? -1
                 : memfd_create("signalbox-pi-tools",
                                MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return 0;
    buf_init(&text, FILE_BYTES);
    pi_tools_write(&text);
    if (text.over || write(fd, text.p, text.n) != (ssize_t)text.n ||
        fcntl(fd, F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        close(fd);
        fd = 0;
    }
    buf_fini(&text);
    return fd;
}

enum err pi_tools_file(struct pool *p, int *file, struct why *why)
{
    struct pools *all = p->all;

    *file = 0;
    if (!p->def.tools)
        return OK;
    if (!all->pi_tools)
        all->pi_tools = pi_tools_make_file();
    *file = all->pi_tools;
    return *file ? OK
                 : why_err(why, ERR_NOMEM,
                           "there is no memory for the file of pi's tools, or "
                           "too many files are open");
}

/* Results. */

static void pi_use_end(struct pi_use *u)
{
    u->state = USE_NONE;
    buf_fini(&u->answer);
}

/* Without an answer pi would wait forever. */
static void pi_use_give_up(struct pool_worker *h)
{
    stint_failed(&h->stints[0],
                 &(struct delivery_failure){
                     .code = STR("out_of_memory"),
                     .words = STR("there was no memory for what came of a "
                                  "tool"),
                     .is_innocent = true});
    pool_worker_stop(h);
}

static void pi_use_send(struct pi_use *u)
{
    struct pool_worker *h = u->pool_worker;
    enum err e =
        u->answer.over ? ERR_NOMEM : pool_worker_send(h, buf_str(&u->answer));

    if (e == ERR_BUSY)
        return; /* pi_uses_room sends it later */
    pi_use_end(u);
    if (e == ERR_NOMEM)
        pi_use_give_up(h);
}

static void pi_use_answer(struct pi_use *u, struct str text)
{
    u->state = USE_WAITS;
    buf_init(&u->answer, 6 * text.n + 1024); /* with every byte escaped */
    pi_put_answer(&u->answer, (struct str){u->id, u->n_id},
                  &(struct input_answer){.has_value = true, .value = text});
    pi_use_send(u);
}

static void pi_use_reject(struct pi_use *u, const struct why *why)
{
    struct buf words;

    buf_init(&words, WORDS_BYTES);
    wire_tool_error(&words, str_of(why->text));
    pi_use_answer(u, buf_str(&words));
    buf_fini(&words);
}

static void pi_use_on_done(void *ctx, struct str text)
{
    struct pi_use *u = ctx;
    struct why why;

    if (text.n <= PI_RESULT_BYTES) {
        pi_use_answer(u, text);
        return;
    }
    why_err(&why, ERR_LIMIT,
            "the answer has %zu bytes, and %d are the most: ask for less",
            text.n, PI_RESULT_BYTES);
    pi_use_reject(u, &why);
}

void pi_uses_room(struct pi_uses *all)
{
    for (size_t i = 0; i < PI_USES_MAX; i++)
        if (all->list[i].state == USE_WAITS)
            pi_use_send(&all->list[i]);
}

void pi_uses_stop(struct pool_worker *h, struct pi_uses *all)
{
    const struct deliver_opts *o = &pool_worker_deliver(h)->opts;

    for (size_t i = 0; i < PI_USES_MAX; i++) {
        struct pi_use *u = &all->list[i];

        if (u->state == USE_RUNS && u->handle)
            o->tool_cancel(o->ctx, u->handle);
        if (u->state != USE_NONE)
            pi_use_end(u);
    }
}

/* Calls. */

static enum err pi_call_read(struct arena *a, struct str quoted,
                             enum wire_tool *tool, struct str *arguments,
                             struct why *why)
{
    static const struct str keys[] = {STR("tool"), STR("arguments")};
    struct str call, name, v[2];

    if (!json_unquote(a, quoted, &call) || json_scan(call, keys, 2, v, NULL) ||
        !json_unquote(a, v[0], &name) || !str_starts(v[1], STR("{")))
        return why_err(why, ERR_BAD_REQUEST,
                       "a call is {\"tool\":NAME,\"arguments\":{…}}");
    *tool = wire_tool_of(name);
    *arguments = v[1];
    return *tool ? OK
                 : why_err(why, ERR_BAD_REQUEST,
                           "there is no tool \"%.*s\": there are "
                           "delegate_to_agent and agent_search",
                           STR_ARG(str_head(name, 64)));
}

static struct pi_use *pi_uses_free_one(struct pi_uses *all)
{
    for (size_t i = 0; i < PI_USES_MAX; i++)
        if (all->list[i].state == USE_NONE)
            return &all->list[i];
    return NULL;
}

static enum err pi_use_begin(struct pi_use *u, struct arena *scratch,
                             struct str call, struct why *why)
{
    struct pool_worker *h = u->pool_worker;
    const struct deliver_opts *o = &pool_worker_deliver(h)->opts;
    const struct carried *c = h->stints[0].carried;
    enum wire_tool tool = WIRE_NO_TOOL;
    struct str arguments;
    enum err e = pi_call_read(scratch, call, &tool, &arguments, why);

    if (!e)
        o->on_tool(o->ctx, &c->delivery.id, str_of(h->agent), tool, arguments,
                   pi_use_on_done, u, &u->handle);
    return e;
}

/* There is no slot to keep a pending answer; if it cannot be sent now, the call
 * waits until its task is over. */
static void pi_use_reject_at_once(struct pool_worker *h, struct str id,
                                  const struct why *why)
{
    struct buf words;

    buf_init(&words, WORDS_BYTES);
    wire_tool_error(&words, str_of(why->text));
    if (pi_answer(h, id,
                  &(struct input_answer){.has_value = true,
                                         .value = buf_str(&words)}) != OK)
        log_debug(pool_worker_deliver(h)->opts.log, "deliver.answer_unsaid",
                  LOG_S("process", h->pool->def.name));
    buf_fini(&words);
}

bool pi_used(struct pool_worker *h, struct pi_uses *all, struct arena *scratch,
             struct str id, struct str call)
{
    struct pi_use *u = pi_uses_free_one(all);
    struct why why;

    if (!h->stints[0].carried || !pool_worker_deliver(h)->opts.on_tool)
        return false;
    if (!u || all->n_calls == PI_CALLS_MAX) {
        why_err(&why, ERR_LIMIT,
                u ? "this task has made %d calls, and those are the most"
                  : "%d calls at once are the most: wait for some of them",
                u ? PI_CALLS_MAX : PI_USES_MAX);
        pi_use_reject_at_once(h, id, &why);
        return true;
    }
    all->n_calls++;
    *u = (struct pi_use){.pool_worker = h, .state = USE_RUNS, .n_id = id.n};
    memcpy(u->id, id.p, id.n);
    if (pi_use_begin(u, scratch, call, &why) != OK)
        pi_use_reject(u, &why);
    return true;
}
