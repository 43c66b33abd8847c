#ifndef TEST_WEEK_LETTERS_H
#define TEST_WEEK_LETTERS_H

/* What is sent. A story is five messages: Jay asks Z, Jay submits to Rick what
 * Z has to have answered first, and adds to it; Leroy checks on Jay, and Jay
 * has a lead for Leroy. Anyone who was not answered sends the same again. */

#include "speak/speak.h"
#include "test/week/house.h"

enum kind { KIND_REQUEST, KIND_SUBMISSION, KIND_UPDATE, KIND_CHECK, KIND_LEAD };

static inline int story_of(int letter)
{
    return letter / KINDS;
}

static inline enum kind kind_of(int letter)
{
    return (enum kind)(letter % KINDS);
}

/* Those of one lane are carried one after the other, as they were sent. */
static inline int lane_of(int letter)
{
    static const int n_stories = MESSAGES_MAX / KINDS;
    enum kind k = kind_of(letter);

    if (k == KIND_REQUEST)
        return story_of(letter);
    if (k == KIND_SUBMISSION || k == KIND_UPDATE)
        return n_stories + story_of(letter);
    return 2 * n_stories + (k == KIND_LEAD);
}

static inline int letter_write(int i, char *out, size_t n)
{
    static const char *const from[KINDS] = {"Jay", "Jay", "Jay", "Leroy",
                                            "Jay"};
    static const char *const to[KINDS] = {"Z", "Rick", "Rick", "Jay", "Leroy"};
    static const char *const type[KINDS] = {"REQUEST", "SUBMISSION", "UPDATE",
                                            "STATUS_CHECK", "LEAD"};
    enum kind k = kind_of(i);
    char reference[64] = "";

    if (k <= KIND_UPDATE)
        snprintf(reference, sizeof(reference), "\"reference\":\"SUBM-%d\",",
                 story_of(i));
    else
        snprintf(reference, sizeof(reference), "\"reference\":\"%s\",",
                 type[k]);
    return snprintf(out, n,
                    "{\"message_id\":\"m-%d\",\"from\":\"%s\",\"to\":\"%s\","
                    "\"type\":\"%s\",%s\"payload\":{\"score\":%d,\"n\":%d}}",
                    i, from[k], to[k], type[k], reference,
                    world->letters[i].score, i);
}

static void on_letter(struct msg *m, void *ctx)
{
    struct letter_log *l = ctx;

    if (m->err == OK) {
        if (l->state == LETTER_ACKNOWLEDGED)
            CHECK(strcmp(l->task_id, m->task.id.text) == 0);
        snprintf(l->task_id, sizeof(l->task_id), "%s", m->task.id.text);
        l->state = LETTER_ACKNOWLEDGED;
    } else {
        CHECK(l->state != LETTER_ACKNOWLEDGED);
        l->state = LETTER_REFUSED;
        world->n_refused++;
        if (world->n_refused < 5)
            fprintf(stderr, "refused: %s %s\n", err_row(m->err)->wording,
                    m->why.text);
    }
    msg_free(m);
}

static inline void letter_send(int i)
{
    struct caller who = caller_named("admin");
    struct msg *m = msg_new(&who, loop_wall_ms(&stage.loop));
    struct letter_log *l = &world->letters[i];
    struct envelope e;
    struct buf meaning;
    char body[512];
    int n = letter_write(i, body, sizeof(body));
    struct str text = {body, (size_t)n};

    CHECK(m && n > 0 && n < (int)sizeof(body));
    buf_init(&meaning, 4096);
    if (speak_envelope(m, text, &e) != OK ||
        speak_envelope_sent(m, text, &e, true, &meaning) != OK)
        fail_with(&m->why);
    memcpy(m->call.body_hash, buf_str(&meaning).p + 15, 16);
    buf_fini(&meaning);
    walk_message(stage.walk, m, on_letter, l);
}

/* So many as it is time for; and after a start all that had no answer. */
static inline void letters_again(void)
{
    for (int i = 0; i < world->n_letters; i++)
        if (world->letters[i].state == LETTER_NEW) {
            world->n_again++;
            letter_send(i);
        }
}

static inline void letters_step(void)
{
    int64_t since_ms = world->now_ms - world->began_ms;
    int64_t due = since_ms * PER_HOUR / HOUR_MS;

    if (due > world->hours * PER_HOUR)
        due = world->hours * PER_HOUR;
    while (world->n_letters < due) {
        int i = world->n_letters++;

        world->letters[i].score = (uint8_t)chance(100);
        letter_send(i);
    }
}

#endif
