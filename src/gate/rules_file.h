#ifndef GATE_RULES_FILE_H
#define GATE_RULES_FILE_H

/* rules_file: reads the rules file of the configuration, again whenever it has
 * changed.
 *
 * Where the configuration names none, the file is searched at the start and at
 * each reload: routing_rules.json beside the configuration, else in the data
 * folder. A file that was found and then disappears is treated like one that
 * was named: the rules stay, and a start without it fails. The data folder
 * remembers that there was one, until the configuration names another file or
 * says that there is none.
 *
 * The file is polled twice a second rather than watched: it may be a link into
 * a folder of links, or on a file system without notifications. It is read once
 * two polls have found it the same, so that a half-written file is not read. A
 * bad file never replaces good rules: its problems are logged line by line, and
 * shown wherever the rules are shown; likewise a missing file, without which
 * the next start would fail. Threads: loop thread only. */

#include <sys/stat.h>

#include "base/log.h"
#include "base/loop.h"
#include "gate/rules/rules.h"
#include "server/config/config.h"

enum {
    RULES_FILE_LOOK_MS = 500,
    RULES_FILE_PATH_BYTES = 8 * 1024,
    RULES_FILE_WORDS = 320,
};

struct rules_file {
    struct loop *loop;
    struct log *log;
    const char *data; /* the data folder; NULL: nothing is remembered */
    /* The rules have changed; the previous ones are freed when it returns. */
    void (*on_change)(void *ctx);
    void *ctx;

    char *path;    /* NULL: no file */
    bool is_found; /* found by the search, not named */
    struct gate_rules *rules;
    int64_t read_at_ms; /* when the rules were read; zero: never */
    char *next_path;    /* set by rules_file_prepare */
    bool is_next_found;
    struct gate_rules *next;
    bool is_prepared;
    bool is_stopped;
    unsigned n_missed; /* consecutive polls without a file */
    struct stat seen;  /* the file when it was last read */
    struct stat last;  /* at the last poll */
    struct timer look;
    struct gate_problems problems; /* of the current file; n zero: none */
};

/* The file that a configuration means: the one it names, or the one that the
 * search finds, written to `to`. Empty: none. *where: how it was found; NULL:
 * it was named. */
struct str rules_file_place(const struct config *c,
                            char to[RULES_FILE_PATH_BYTES], const char **where);

/* Whether the data folder remembers a file that was found: its path. And the
 * message when that file is gone. */
bool rules_file_was_found(struct str data, char path[RULES_FILE_PATH_BYTES]);
void rules_file_say_missed(const char *path, char words[RULES_FILE_WORDS]);

/* Read a file. On any error problems has "PATH:12:7: …" lines. */
MUST_USE enum err rules_file_read(const char *path, struct gate_rules **out,
                                  struct gate_problems *problems);

/* Read the file, if there is one, and poll it from now on. The caller has set
 * loop, log, data and on_change. Problems are logged line by line; why has the
 * first. */
MUST_USE enum err rules_file_open(struct rules_file *b, const struct config *c,
                                  struct why *why);

/* For a reload: prepare, then commit, which cannot fail, or forget. The file is
 * read again in any case; if the file in use has become bad, that is logged and
 * no error. */
MUST_USE enum err rules_file_prepare(struct rules_file *b,
                                     const struct config *c, struct why *why);
void rules_file_commit(struct rules_file *b);
void rules_file_forget(struct rules_file *b);

/* The current rules; the default rules without a file. Borrowed until the next
 * change. */
const struct gate_rules *rules_file_rules(const struct rules_file *b);

/* Harmless if it was not opened. */
void rules_file_stop(struct rules_file *b);
void rules_file_close(struct rules_file *b);

#endif
