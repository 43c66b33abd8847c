/* Any bytes as what an agent over HTTP answers, and as the authentication of a
 * card. What is taken keeps to the limits and is about the task that was asked
 * for; a proof never leaves its header. The first byte says which. */
#include <assert.h>

#include "deliver/transports/exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void try_answer(struct str text, bool is_chunk)
{
    struct delivery_id id = {.task_id = {"task_a"}, .turn = 2, .attempt = 1};
    struct wire_word w;
    struct why why = {""};
    struct arena arena;
    enum err e;

    arena_init(&arena, text.n + (1 << 20));
    e = answer_read(&arena, text, &id, is_chunk, &w, &why);
    assert(!e || why.text[0]);
    if (!e) {
        assert(w.text.n <= MSG_TEXT_MAX);
        assert(!w.task_id.n || str_eq(w.task_id, STR("task_a")));
        assert(!w.turn || w.turn == 2);
    }
    if (!e && !is_chunk) {
        assert(task_is_over(w.result.status));
        assert(w.result.metadata.n <= MSG_METADATA_MAX);
        assert(!w.result.metadata.n ||
               json_check(w.result.metadata, NULL) == OK);
        assert(w.result.status != TASK_FAILED || w.result.error_code.n);
    }
    arena_fini(&arena);
}

static void try_proof(struct str text)
{
    struct agent a = {.name = STR("far"), .authentication = text};
    struct why why = {""};
    struct arena arena;
    struct credentials p;
    enum err e;

    /* A card that was read has an object there, or nothing. */
    if (json_check(text, NULL) || text.p[0] != '{')
        return;
    arena_init(&arena, 1 << 20);
    e = credentials_of(&arena, &a, &p, &why);
    assert(!e || why.text[0]);
    if (!e && p.header.name.n) {
        assert(!str_has_control(p.header.name));
        assert(!str_has_control(p.header.value));
        assert(p.secrets[0].n && !str_eq_nocase(p.header.name, STR("Host")));
    }
    arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = {(const char *)data + 1, n ? n - 1 : 0};
    char message[64];

    if (n < 2)
        return 0;
    if (data[0] % 3 == 2) {
        try_proof(text);
    } else {
        try_answer(text, data[0] % 3 == 1);
        fetch_complaint(text, &STR("k3y"), 1, message, sizeof(message));
        assert(strlen(message) < sizeof(message) && !strstr(message, "k3y"));
    }
    return 0;
}
