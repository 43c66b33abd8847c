/* Any bytes as a message or a batch, and as what an agent says of its task:
 * never a crash; what is refused is refused with words; what is taken is
 * within its limits, and an answer to it is one line of valid JSON. */
#include <assert.h>
#include <stdlib.h>

#include "model/msg.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void is_one_line(const struct buf *out)
{
    assert(!out->over);
    assert(json_check(buf_str(out), NULL) == OK);
    assert(str_find(buf_str(out), '\n', 0) == out->n);
}

static void say(const struct wire_message *m)
{
    struct json_out o;
    struct buf out;

    buf_init(&out, 64 << 20);
    o = wire_result_open(&out, &m->id);
    json_put_null(&o);
    wire_close(&o);
    is_one_line(&out);
    buf_clear(&out);
    wire_error(&out, &m->id, ERR_BAD_REQUEST, str_of(m->why.text), STR(""));
    is_one_line(&out);
    buf_clear(&out);
    o = wire_call_open(&out, m->id.text, m->method);
    json_put_null(&o);
    wire_close(&o);
    is_one_line(&out);
    buf_fini(&out);
}

static void read_work(struct arena *a, const struct json *params)
{
    struct wire_word w;
    struct why why = {""};

    if (wire_chunk_read(params, &w, &why) != OK)
        assert(why.text[0]);
    else
        assert(w.has_text && w.text.n <= MSG_TEXT_MAX &&
               w.task_id.n < ID_BYTES && w.turn >= 0 && w.attempt >= 0);
    why.text[0] = 0;
    if (wire_result_read(a, params, &w, &why) != OK) {
        assert(why.text[0]);
        return;
    }
    assert(task_is_over(w.result.status));
    assert(w.result.text.n <= MSG_TEXT_MAX);
    assert(w.result.metadata.n <= MSG_METADATA_MAX);
    assert(!w.result.metadata.n || json_check(w.result.metadata, NULL) == OK);
    assert(w.result.error_code.n <= WIRE_ERROR_CODE_MAX);
    assert(w.result.error.n <= WIRE_ERROR_MAX);
    assert((w.result.status == TASK_FAILED) <= (w.result.error.n > 0));
}

static void check(struct arena *a, const struct wire_message *m)
{
    assert(m->id.raw.n <= WIRE_ID_RAW_MAX && m->id.text.n <= WIRE_ID_MAX);
    assert(m->method.n <= WIRE_METHOD_MAX);
    assert((m->kind == WIRE_BAD) == (m->why.text[0] != 0));
    assert((m->kind == WIRE_REQUEST) <= (m->id.raw.n > 0));
    assert((m->kind == WIRE_RESULT) == (m->result != NULL));
    say(m);
    if (m->params)
        read_work(a, m->params);
    if (m->result)
        read_work(a, m->result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = malloc(n ? n : 1); /* so that one byte beyond is seen */
    struct wire_batch b;
    struct why why = {""};
    struct arena a;

    if (n)
        memcpy(copy, data, n);
    arena_init(&a, 16 << 20);
    if (wire_read(&a, (struct str){copy, n}, &b, &why) != OK) {
        assert(why.text[0] && !b.n);
    } else {
        assert(b.n >= 1 && b.n <= WIRE_BATCH_MAX);
        for (size_t i = 0; i < b.n; i++)
            check(&a, &b.list[i]);
    }
    arena_fini(&a);
    free(copy);
    return 0;
}
