#ifndef RULEBOOK_H
#define RULEBOOK_H

/* rulebook: the rules that the configuration means, from their file to the
 * walk, again whenever the file has changed.
 *
 * Where it names none they are looked for, at the start and at each reload:
 * routing_rules.json beside the configuration, else in the data folder. One
 * that was found and is gone is like one that was named: the rules stay, and a
 * start without it fails. The data folder remembers that there was one, until
 * the configuration names another or says that there are none.
 *
 * The file is looked at twice a second rather than watched: it may be a link
 * into a folder of links, or lie where nothing tells of changes. It is read
 * once two looks have found it the same, so that a writer is not met half way.
 * A file that has become bad never replaces what was good: that is logged, line
 * by line, and said wherever the rules are shown; likewise one that is gone,
 * without which the next start would fail. Threads: the loop's. */

#include <sys/stat.h>

#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "gate/gate.h"

enum {
    RULEBOOK_LOOK_MS = 500,
    RULEBOOK_PATH_BYTES = 8 * 1024,
    RULEBOOK_WORDS = 320,
};

struct rulebook {
    struct loop *loop;
    struct log *log;
    const char *data; /* the data folder; NULL: nothing is remembered */
    /* There are other rules: the ones before go when it returns. */
    void (*on_change)(void *ctx);
    void *ctx;

    char *path;    /* NULL: no file */
    bool is_found; /* nobody named it */
    struct gate_rules *rules;
    int64_t read_at_ms; /* when they were; zero: never */
    char *next_path;    /* of rulebook_prepare */
    bool is_next_found;
    struct gate_rules *next;
    bool is_prepared;
    bool is_stopped;
    unsigned n_missed; /* looks, one after the other, that found no file */
    struct stat seen;  /* the file when it was last read */
    struct stat last;  /* at the last look */
    struct timer look;
    struct gate_problems problems; /* of the file as it is; n zero: none */
};

/* The file that a configuration means: the one that it names, or the one that
 * is where it is looked for. Into `to`; empty: none. *where: how it was found,
 * in words; NULL: it was named. */
struct str rulebook_place(const struct config *c, char to[RULEBOOK_PATH_BYTES],
                          const char **where);

/* Whether the data folder remembers one that was found: its path. And what to
 * say where it is there no more. */
bool rulebook_was_found(struct str data, char path[RULEBOOK_PATH_BYTES]);
void rulebook_say_missed(const char *path, char words[RULEBOOK_WORDS]);

/* Read a file: "PATH:12:7: …" line by line into problems, however it fails. */
MUST_USE enum err rulebook_read(const char *path, struct gate_rules **out,
                                struct gate_problems *problems);

/* Read the first one, if there is one, and look at it from now on. The rooms
 * are filled in. What is wrong with it is logged line by line; why says the
 * first of it. */
MUST_USE enum err rulebook_open(struct rulebook *b, const struct config *c,
                                struct why *why);

/* What a reload can change: prepare, then commit, which cannot fail, or
 * forget. The file is read again in any case; one that is in use already and
 * has become bad is logged, and no error. */
MUST_USE enum err rulebook_prepare(struct rulebook *b, const struct config *c,
                                   struct why *why);
void rulebook_commit(struct rulebook *b);
void rulebook_forget(struct rulebook *b);

/* What counts now; those of no file where there is none. Borrowed until the
 * next. */
const struct gate_rules *rulebook_rules(const struct rulebook *b);

/* Harmless when it was not opened. */
void rulebook_stop(struct rulebook *b);
void rulebook_close(struct rulebook *b);

#endif
