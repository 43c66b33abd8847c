#ifndef TEST_LIB_POOL_CHILD_H
#define TEST_LIB_POOL_CHILD_H

/* The program that pools start in tests: the test itself, which is a child
 * instead when POOL_CHILD is set. It does what its tasks tell it to. */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char pc_line[1 << 20];
static int pc_n_tasks, pc_n_cancels;
static bool pc_stutters; /* it says everything twice */

/* The string member of that name, decoded as far as tests need it. */
static inline const char *pc_get(const char *key, char *out, size_t max)
{
    char quoted[64];
    const char *p;
    size_t n = 0;

    snprintf(quoted, sizeof(quoted), "\"%s\":\"", key);
    p = strstr(pc_line, quoted);
    out[0] = '\0';
    if (!p)
        return out;
    for (p += strlen(quoted); *p && *p != '"' && n + 1 < max; p++)
        out[n++] = *p;
    out[n] = '\0';
    return out;
}

__attribute__((format(printf, 1, 2))) static inline void pc_say(const char *fmt,
                                                                ...)
{
    for (int i = 0; i < (pc_stutters ? 2 : 1); i++) {
        __builtin_va_list ap;

        __builtin_va_start(ap, fmt);
        vprintf(fmt, ap);
        __builtin_va_end(ap);
        putchar('\n');
    }
    fflush(stdout);
}

static inline void pc_result(const char *task, const char *text)
{
    pc_say("{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
           "\"task_id\":\"%s\",\"status\":\"completed\",\"text\":\"%s\"}}",
           task, text);
}

static inline void pc_chunk(const char *task, const char *text)
{
    pc_say("{\"jsonrpc\":\"2.0\",\"method\":\"task.chunk\",\"params\":{"
           "\"task_id\":\"%s\",\"text\":\"%s\"}}",
           task, text);
}

__attribute__((noreturn)) static inline void pc_sleep(void)
{
    for (;;)
        pause();
}

/* One that ignores the signal too, and has what we have. */
static inline void pc_fork(const char *task, bool leaves_group)
{
    char text[32];
    int ready[2];
    char c;
    pid_t pid;

    if (pipe(ready) != 0)
        _exit(9);
    pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_IGN);
        if (leaves_group)
            setsid();
        if (write(ready[1], "x", 1) != 1)
            _exit(9);
        pc_sleep();
    }
    if (read(ready[0], &c, 1) != 1)
        _exit(9);
    snprintf(text, sizeof(text), "%d", (int)pid);
    pc_chunk(task, text);
}

static inline void pc_flood(void)
{
    static char many[65536];

    memset(many, 'x', sizeof(many));
    while (write(1, many, sizeof(many)) > 0)
        ;
    pc_sleep();
}

/* More than a chunk may be. */
static inline const char *pc_much(void)
{
    static char much[(1 << 20) + 2];

    memset(much, 'x', sizeof(much) - 1);
    return much;
}

static inline void pc_stutter(const char *task)
{
    char id[64];

    pc_stutters = true;
    pc_say("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"status\":"
           "\"working\"}}",
           pc_get("id", id, sizeof(id)));
    pc_chunk(task, "ha");
    pc_result(task, "haha");
    pc_stutters = false;
}

static inline void pc_task(void)
{
    char task[64], message[4096], text[64];

    pc_get("task_id", task, sizeof(task));
    pc_get("message", message, sizeof(message));
    pc_n_tasks++;
    if (strncmp(message, "echo ", 5) == 0) {
        pc_chunk(task, message + 5);
        pc_result(task, message + 5);
    } else if (strcmp(message, "pid") == 0) {
        snprintf(text, sizeof(text), "%d", (int)getpid());
        pc_result(task, text);
    } else if (strcmp(message, "count") == 0) {
        snprintf(text, sizeof(text), "%d", pc_n_tasks);
        pc_result(task, text);
    } else if (strcmp(message, "cancels") == 0) {
        snprintf(text, sizeof(text), "%d of %d", pc_n_cancels, pc_n_tasks);
        pc_result(task, text);
    } else if (strcmp(message, "too much") == 0) {
        pc_chunk(task, pc_much());
    } else if (strcmp(message, "chunks") == 0) {
        pc_chunk(task, "one ");
        pc_chunk(task, "two");
        pc_say("{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
               "\"task_id\":\"%s\"}}",
               task);
    } else if (strcmp(message, "twice") == 0) {
        pc_result(task, "first");
        pc_result(task, "second");
    } else if (strcmp(message, "stutter") == 0) {
        pc_stutter(task);
    } else if (strncmp(message, "other ", 6) == 0) {
        pc_chunk(message + 6, "not mine");
        pc_result(message + 6, "not mine");
        pc_chunk(task, "said");
    } else if (strcmp(message, "fail") == 0) {
        pc_say("{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
               "\"task_id\":\"%s\",\"status\":\"failed\",\"error\":{\"code\":"
               "\"no_luck\",\"message\":\"not today\"}}}",
               task);
    } else if (strcmp(message, "ask") == 0) {
        pc_say("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"agent.search\","
               "\"params\":{\"query\":\"x\"}}");
        if (!fgets(pc_line, sizeof(pc_line), stdin))
            _exit(0);
        pc_result(task, strstr(pc_line, "\"id\":7") ? "answered" : "not");
    } else if (strcmp(message, "receipt") == 0) {
        pc_say("{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"task.result\","
               "\"params\":{\"task_id\":\"%s\",\"text\":\"kept?\"}}",
               task);
    } else if (strncmp(message, "die ", 4) == 0) {
        fprintf(stderr, "a secret word of %s\n", task);
        _exit((int)strtol(message + 4, NULL, 10));
    } else if (strncmp(message, "kill", 4) == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(message, "hang") == 0) {
        pc_chunk(task, "here");
    } else if (strcmp(message, "stubborn") == 0) {
        signal(SIGTERM, SIG_IGN);
        pc_chunk(task, "here");
        pc_sleep();
    } else if (strcmp(message, "fork") == 0) {
        signal(SIGTERM, SIG_IGN);
        pc_fork(task, false);
        pc_sleep();
    } else if (strcmp(message, "leave") == 0) {
        pc_fork(task, true);
        pc_sleep();
    } else if (strcmp(message, "flood") == 0) {
        pc_flood();
    } else if (strcmp(message, "mute") == 0) {
        close(1);
        pc_sleep();
    } else if (strcmp(message, "deaf") == 0) {
        close(0);
        pc_result(task, "the last");
        pc_sleep();
    } else if (strcmp(message, "chatter") == 0) {
        pc_say("Starting up...\n\n  50%% done\n[1,2]\n");
        pc_result(task, "after all");
    } else if (strcmp(message, "garbage") == 0) {
        for (int i = 0; i < 1000; i++)
            pc_say(i % 2 ? "{\"jsonrpc\":" : "\x01\xff garbage");
    }
}

static inline void pc_cancel(void)
{
    char task[64];

    pc_n_cancels++;
    pc_get("task_id", task, sizeof(task));
    pc_say("{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
           "\"task_id\":\"%s\",\"status\":\"cancelled\"}}",
           task);
}

static inline void pc_noise(void)
{
    for (int i = 0; i < 60; i++)
        pc_say("%d%% done", i);
}

/* Our own dialect. */
static inline void pc_own(const char *how)
{
    while (fgets(pc_line, sizeof(pc_line), stdin)) {
        if (strstr(pc_line, "\"method\":\"hello\"")) {
            if (strcmp(how, "noisy") == 0)
                pc_noise();
            if (strcmp(how, "many") == 0)
                pc_say("{\"jsonrpc\":\"2.0\",\"id\":\"hello\",\"result\":{"
                       "\"at_once\":4}}");
            else if (strcmp(how, "plain") == 0)
                pc_say("{\"jsonrpc\":\"2.0\",\"id\":\"hello\",\"error\":{"
                       "\"code\":-32601,\"message\":\"no such method\"}}");
            else if (strcmp(how, "eager") == 0)
                pc_say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                       "\"agent.register\",\"params\":{}}");
            else if (strcmp(how, "mute") != 0)
                pc_say("{\"jsonrpc\":\"2.0\",\"id\":\"hello\",\"result\":{}}");
            if (strcmp(how, "noisy") == 0)
                pc_noise();
        } else if (strstr(pc_line, "\"method\":\"task.execute\"")) {
            pc_task();
        } else if (strstr(pc_line, "\"method\":\"task.cancel\"")) {
            pc_cancel();
        } else if (strstr(pc_line, "\"recorded\":true")) {
            fprintf(stderr, "recorded\n");
        }
    }
}

/* As pi does. */

static inline void pc_pi_message(const char *text, const char *reason,
                                 const char *error)
{
    pc_say("{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\","
           "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":"
           "\"text\",\"text\":\"%s\"}],\"model\":\"m\",\"usage\":{\"input\":5,"
           "\"output\":2,\"cacheRead\":1,\"cacheWrite\":0,\"cost\":{\"total\":"
           "0.5}},\"stopReason\":\"%s\"%s%s%s}}",
           text, reason, error ? ",\"errorMessage\":\"" : "",
           error ? error : "", error ? "\"" : "");
}

static inline void pc_pi_delta(const char *text)
{
    pc_say("{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":"
           "\"text_delta\",\"delta\":\"%s\",\"partial\":{}},\"message\":{}}",
           text);
}

static inline void pc_pi_end(const char *how)
{
    pc_say("{\"type\":\"agent_end\",\"messages\":[]}");
    if (strcmp(how, "settles") == 0)
        pc_say("{\"type\":\"agent_settled\"}");
}

/* It asks, and says what it was told but for quotes. The words are members of
 * what it asks, with ' for ". */
static inline void pc_pi_dialog(char *words)
{
    for (char *p = words; *p; p++)
        if (*p == '\'')
            *p = '"';
    pc_say("{\"type\":\"extension_ui_request\",\"id\":\"d-1\",%s}", words);
    if (!fgets(pc_line, sizeof(pc_line), stdin))
        _exit(0);
    pc_line[strcspn(pc_line, "\n")] = '\0';
    for (char *p = pc_line; *p; p++)
        if (*p == '"')
            *p = '\'';
    pc_pi_message(pc_line, "stop", NULL);
}

/* Calls of tools as the extension makes them: `n` of the kind, `window` at
 * once. It says how many were answered, how many of them with an error, and
 * what the last was, but for quotes; nothing of that where kind is 'a', and for
 * 'l' (large answers) how long that was. */
static inline void pc_pi_calls(int n, int window, char kind)
{
    static const char *const bad[] = {"no call",
                                      "{\\\"tool\\\":\\\"fly\\\","
                                      "\\\"arguments\\\":{}}",
                                      "{\\\"tool\\\":\\\"agent_search\\\","
                                      "\\\"arguments\\\":[]}"};
    static char text[4096];
    int n_sent = 0, n_errors = 0;
    size_t max = 0, length = 0;
    char *line = NULL;

    for (int n_heard = 0; n_heard < n;) {
        for (; n_sent < n && n_sent - n_heard < window; n_sent++)
            pc_say("{\"type\":\"extension_ui_request\",\"id\":\"c-%d\","
                   "\"method\":\"input\",\"title\":\"signalbox.tool\","
                   "\"placeholder\":\"%s\"}",
                   n_sent,
                   kind >= '0' && kind <= '2'
                       ? bad[kind - '0']
                       : "{\\\"tool\\\":\\\"agent_search\\\",\\\"arguments"
                         "\\\":{\\\"query\\\":\\\"x\\\"}}");
        if (getline(&line, &max, stdin) < 0)
            _exit(0);
        if (!strstr(line, "extension_ui_response"))
            continue; /* an abort */
        n_heard++;
        length = strlen(line);
        n_errors += strstr(line, "error\\\"") != NULL;
    }
    for (char *p = line; p && *p; p++)
        if (*p == '"' || *p == '\\' || *p == '\n')
            *p = '\'';
    if (kind == 'a')
        snprintf(text, sizeof(text), "%d answered", n);
    else if (kind == 'l')
        snprintf(text, sizeof(text), "%d, %d errors: %zu", n, n_errors, length);
    else
        snprintf(text, sizeof(text), "%d, %d errors: %.300s", n, n_errors,
                 line);
    free(line);
    pc_pi_message(text, "stop", NULL);
}

/* What it was handed: how it begins, and whether it can be changed. */
static inline void pc_pi_file(void)
{
    char begin[16] = "", text[64];
    FILE *f = fopen("/proc/self/fd/4", "r+");
    bool has_changed;

    if (!f || !fgets(begin, sizeof(begin), f))
        snprintf(begin, sizeof(begin), "none");
    has_changed = f && fseek(f, 0, SEEK_SET) == 0 && fputc('x', f) == 'x' &&
                  fflush(f) == 0;
    if (f)
        fclose(f);
    snprintf(text, sizeof(text), "%s %s", begin,
             has_changed ? "changed" : "sealed");
    pc_pi_message(text, "stop", NULL);
}

static inline void pc_pi_prompt(const char *how)
{
    char message[4096], text[64], kind;
    int n, window;

    pc_get("message", message, sizeof(message));
    if (strcmp(message, "refuse") == 0) {
        pc_say("{\"id\":\"prompt\",\"type\":\"response\",\"command\":"
               "\"prompt\",\"success\":false,\"error\":\"No API key\"}");
        return;
    }
    pc_n_tasks++;
    pc_stutters = strcmp(message, "stutter") == 0;
    pc_say("{\"id\":\"prompt\",\"type\":\"response\",\"command\":\"prompt\","
           "\"success\":true}");
    pc_say("{\"type\":\"agent_start\"}");
    if (strcmp(message, "hang") == 0) {
        pc_pi_delta("here");
        return;
    }
    if (strcmp(message, "die") == 0)
        _exit(3);
    if (strncmp(message, "dialog ", 7) == 0) {
        pc_pi_dialog(message + 7);
    } else if (sscanf(message, "calls %d %d %c", &n, &window, &kind) == 3) {
        pc_pi_calls(n, window, kind);
    } else if (strcmp(message, "file") == 0) {
        pc_pi_file();
    } else if (strcmp(message, "error") == 0) {
        pc_pi_message("", "error", "400 no such luck");
    } else if (strcmp(message, "again") == 0) {
        pc_pi_delta("bro");
        pc_pi_message("bro", "error", "503 busy");
        pc_say("{\"type\":\"agent_end\",\"messages\":[]}");
        pc_say("{\"type\":\"auto_retry_start\",\"attempt\":1}");
        pc_say("{\"type\":\"agent_start\"}");
        pc_pi_delta("whole");
        pc_pi_message("whole", "stop", NULL);
    } else if (strcmp(message, "tools") == 0) {
        pc_pi_delta("Let me see.");
        pc_pi_message("Let me see.", "toolUse", NULL);
        pc_pi_delta("Done.");
        pc_pi_message("Done.", "stop", NULL);
    } else {
        snprintf(text, sizeof(text), "%d/%d", (int)getpid(), pc_n_tasks);
        pc_pi_delta(text);
        pc_pi_message(text, "stop", NULL);
    }
    pc_pi_end(how);
    pc_stutters = false;
}

static inline void pc_pi(const char *how)
{
    while (fgets(pc_line, sizeof(pc_line), stdin)) {
        char id[32];

        pc_get("id", id, sizeof(id));
        if (strstr(pc_line, "\"type\":\"get_state\"")) {
            pc_say("{\"id\":\"%s\",\"type\":\"response\",\"command\":"
                   "\"get_state\",\"success\":true}",
                   id);
        } else if (strstr(pc_line, "\"type\":\"new_session\"")) {
            pc_n_tasks = 0;
            pc_say("{\"id\":\"%s\",\"type\":\"response\",\"command\":"
                   "\"new_session\",\"success\":true}",
                   id);
        } else if (strstr(pc_line, "\"type\":\"abort\"")) {
            pc_pi_message("", "aborted", "Request was aborted.");
            pc_pi_end(how);
        } else if (strstr(pc_line, "\"type\":\"prompt\"")) {
            pc_pi_prompt(how);
        }
    }
}

__attribute__((constructor)) static inline void pool_child(void)
{
    const char *how = getenv("POOL_CHILD");

    if (!how)
        return;
    if (strcmp(how, "exit") == 0) {
        fprintf(stderr, "cannot work here\n");
        _exit(7);
    }
    if (strncmp(how, "prints ", 7) == 0) { /* text, as a tool for people */
        if (!fgets(pc_line, sizeof(pc_line), stdin))
            _exit(0);
        pc_say("%s", how + 7);
        pc_sleep();
    }
    if (strcmp(how, "answers and ends") == 0) {
        pc_say("Hello! How can I help?");
        _exit(0);
    }
    if (strcmp(how, "closes") == 0) {
        close(1);
        pc_sleep();
    }
    if (strncmp(how, "pi", 2) == 0)
        pc_pi(how[2] ? how + 3 : "");
    else
        pc_own(how);
    _exit(0);
}

#endif
