#ifndef TEST_WEEK_WORLD_H
#define TEST_WEEK_WORLD_H

/* What is around the server in the simulated week, and outlives it: the time,
 * those who send and what they were told, the agents and what they have in
 * hand, the people. All of it is in memory that the parent shares with its
 * children, one of which is the server at a time, so that a killed one leaves
 * it as it was. A child is only killed inside a system call of the store
 * (kill.c), never while it writes here. */

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"

enum {
    WEEK_HOURS = 7 * 24,
    PER_HOUR = 100,
    MESSAGES_MAX = WEEK_HOURS * PER_HOUR,
    KINDS = 5, /* of messages; one of each makes a story */
    LANES_MAX = 2 * MESSAGES_MAX / KINDS + 2,
    AGENTS = 4,
    WORKS_MAX = 64, /* in one agent's hands */
    STEP_MS = 2000,
};
#define HOUR_MS INT64_C(3600000)

enum letter_state {
    LETTER_NEW = 0,
    LETTER_ACKNOWLEDGED, /* the server has said that it has it */
    LETTER_REFUSED,      /* or will not */
};

struct letter_log {
    char task_id[ID_BYTES];
    uint8_t state;     /* enum letter_state */
    uint8_t over;      /* status that it had once it was over; zero: not yet */
    uint8_t n_carried; /* to an agent, at most 255 */
    uint8_t score;
};

struct work {
    char task_id[ID_BYTES];
    int64_t due_ms;
    bool fails;
};

struct world_agent {
    bool is_up;
    int64_t change_ms; /* when it dies, or is back */
    int64_t bad_until_ms;
    struct work works[WORKS_MAX];
    int n_works;
};

struct world {
    uint64_t random;
    int64_t began_ms, now_ms;
    int hours;      /* that the simulation lasts */
    bool is_ending; /* nothing new, everybody well, until all is over */
    bool is_done;
    int n_letters; /* sent, or to be sent again */
    struct letter_log letters[MESSAGES_MAX];
    int lane_last[LANES_MAX]; /* letter that was carried last, plus one */
    struct world_agent agents[AGENTS];
    int64_t kill_hour; /* the next in which the server is killed */
    long api_left;     /* until it is; zero: not now */
    long hour_calls;   /* that an hour took */
    /* For the report. */
    int n_kills, n_refused, n_again, n_deaths, n_results;
    int n_decided, n_second;  /* by people; by one who came second */
    int64_t n_escalations[5]; /* by kind */
    int64_t n_held, hold_ms, hold_max_ms;
    int over[16]; /* by status */
};

#endif
