/* The tools that pi is offered: those that models have, by the same calls.
 *
 *     the server                          pi
 *     --extension, a file of ours      ->       when it starts
 *                                      <- extension_ui_request {id, method:
 *                                           input, title: signalbox.tool,
 *                                           placeholder: {tool, arguments}}
 *     extension_ui_response {id, value} ->
 *
 * The file is a memfd that every pi has open, sealed: it needs no folder that a
 * program may see, and nobody can write to it. It is made once, of the list of
 * tools and pi_tools.js.
 *
 * Whatever is wrong with a call is the model's to hear. A call ends with its
 * task; what was delegated by then is hire's matter. */
#include "deliver/pi.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_BYTES = 64 * 1024, WORDS_BYTES = 4096 };

/* pi_tools_data.c */
extern const char pi_tools_begin[], pi_tools_end[];

/* The file. */

static void write_file(struct buf *out)
{
    struct json_out o = json_out(out);

    buf_add_str(out, STR("const tools = "));
    wire_tools(&o, WIRE_PI);
    buf_add_str(out, STR(";\n"));
    buf_add(out, pi_tools_begin,
            (size_t)((uintptr_t)pi_tools_end - (uintptr_t)pi_tools_begin));
}

static bool fill(int fd, struct str text)
{
    return write(fd, text.p, text.n) == (ssize_t)text.n &&
           fcntl(fd, F_ADD_SEALS,
                 F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
}

/* Zero: there is no memory, or there are too many files. */
static int make_file(void)
{
    struct buf text;
    int fd = FAULT("deliver.pi_tools_file")
                 ? -1
                 : memfd_create("signalbox-pi-tools",
                                MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return 0;
    buf_init(&text, FILE_BYTES);
    write_file(&text);
    if (text.over || !fill(fd, buf_str(&text))) {
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
        all->pi_tools = make_file();
    *file = all->pi_tools;
    return *file ? OK
                 : why_err(why, ERR_NOMEM,
                           "there is no memory for the file of pi's tools, or "
                           "too many files are open");
}

/* What came of a call. */

static void end(struct pi_use *u)
{
    u->state = USE_NONE;
    buf_fini(&u->answer);
}

/* Without its answer pi would wait for ever. */
static void give_up(struct hand *h)
{
    stint_failed(&h->stints[0],
                 &(struct delivery_failure){
                     .code = STR("out_of_memory"),
                     .words = STR("there was no memory for what came of a "
                                  "tool"),
                     .is_innocent = true});
    hand_stop(h);
}

static void say(struct pi_use *u)
{
    struct hand *h = u->hand;
    enum err e = u->answer.over ? ERR_NOMEM : hand_send(h, buf_str(&u->answer));

    if (e == ERR_BUSY)
        return; /* pi_uses_room */
    end(u);
    if (e == ERR_NOMEM)
        give_up(h);
}

static void answer(struct pi_use *u, struct str text)
{
    u->state = USE_WAITS;
    buf_init(&u->answer, 6 * text.n + 1024); /* where all is to be escaped */
    pi_put_answer(&u->answer, (struct str){u->id, u->n_id},
                  &(struct input_answer){.has_value = true, .value = text});
    say(u);
}

static void refuse(struct pi_use *u, const struct why *why)
{
    struct buf words;

    buf_init(&words, WORDS_BYTES);
    wire_tool_error(&words, str_of(why->text));
    answer(u, buf_str(&words));
    buf_fini(&words);
}

static void on_done(void *ctx, struct str text)
{
    struct pi_use *u = ctx;
    struct why why;

    if (text.n <= PI_RESULT_BYTES) {
        answer(u, text);
        return;
    }
    why_err(&why, ERR_LIMIT,
            "the answer has %zu bytes, and %d are the most: ask for less",
            text.n, PI_RESULT_BYTES);
    refuse(u, &why);
}

void pi_uses_room(struct pi_uses *all)
{
    for (size_t i = 0; i < PI_USES_MAX; i++)
        if (all->list[i].state == USE_WAITS)
            say(&all->list[i]);
}

void pi_uses_stop(struct hand *h, struct pi_uses *all)
{
    const struct deliver_opts *o = &hand_deliver(h)->opts;

    for (size_t i = 0; i < PI_USES_MAX; i++) {
        struct pi_use *u = &all->list[i];

        if (u->state == USE_RUNS && u->handle)
            o->tool_cancel(o->ctx, u->handle);
        if (u->state != USE_NONE)
            end(u);
    }
}

/* Making one. */

static enum err read_call(struct arena *a, struct str quoted,
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

static struct pi_use *free_use(struct pi_uses *all)
{
    for (size_t i = 0; i < PI_USES_MAX; i++)
        if (all->list[i].state == USE_NONE)
            return &all->list[i];
    return NULL;
}

static enum err use(struct pi_use *u, struct arena *scratch, struct str call,
                    struct why *why)
{
    struct hand *h = u->hand;
    const struct deliver_opts *o = &hand_deliver(h)->opts;
    const struct carried *c = h->stints[0].carried;
    enum wire_tool tool = WIRE_NO_TOOL;
    struct str arguments;
    enum err e = read_call(scratch, call, &tool, &arguments, why);

    if (e)
        return e;
    if (FAULT("deliver.pi_tool") ||
        !o->on_tool(o->ctx, &c->delivery.id, str_of(h->agent), tool, arguments,
                    on_done, u, &u->handle))
        return why_err(why, ERR_NOMEM, "memory is short: try again");
    return OK;
}

/* There is no place to keep what cannot be said at once; the call waits until
 * its task is over. */
static void refuse_at_once(struct hand *h, struct str id, const struct why *why)
{
    struct buf words;

    buf_init(&words, WORDS_BYTES);
    wire_tool_error(&words, str_of(why->text));
    if (pi_answer(h, id,
                  &(struct input_answer){.has_value = true,
                                         .value = buf_str(&words)}) != OK)
        log_debug(hand_deliver(h)->opts.log, "deliver.answer_unsaid",
                  LOG_S("process", h->pool->def.name));
    buf_fini(&words);
}

bool pi_used(struct hand *h, struct pi_uses *all, struct arena *scratch,
             struct str id, struct str call)
{
    struct pi_use *u = free_use(all);
    struct why why;

    if (!h->stints[0].carried || !hand_deliver(h)->opts.on_tool)
        return false;
    if (!u || all->n_calls == PI_CALLS_MAX) {
        why_err(&why, ERR_LIMIT,
                u ? "this task has made %d calls, and those are the most"
                  : "%d calls at once are the most: wait for some of them",
                u ? PI_CALLS_MAX : PI_USES_MAX);
        refuse_at_once(h, id, &why);
        return true;
    }
    all->n_calls++;
    *u = (struct pi_use){.hand = h, .state = USE_RUNS, .n_id = id.n};
    memcpy(u->id, id.p, id.n);
    if (use(u, scratch, call, &why) != OK)
        refuse(u, &why);
    return true;
}
