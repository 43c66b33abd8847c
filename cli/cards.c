/* All files are read before anything is sent, so that the number of cards is
 * known and a duplicate name is found before its first card is sent. Positions
 * are computed only for problems, starting at the line of the card: a long list
 * with many mistakes is not read from its start for each. */
#include "cli/cards.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/slurp.h"
#include "model/agent.h"

/* The names come from the user's own files, so a fixed seed is safe. */
static const uint64_t map_seed[2] = {0xca2d5, 0x5e1ec7ed};

#define ARENA_MAX ((size_t)2 * 1024 * 1024 * 1024)

void cards_init(struct cards *s)
{
    *s = (struct cards){.n = 0};
    arena_init(&s->arena, ARENA_MAX);
    map_init(&s->by_name, CARDS_MAX, map_seed);
}

void cards_fini(struct cards *s)
{
    free(s->list);
    map_fini(&s->by_name);
    arena_fini(&s->arena);
}

/* A text that is being parsed. */
struct source {
    struct cards *set;
    struct str file, text;
    unsigned line;  /* of the last value */
    size_t line_at; /* the start of that line */
};

/* NULL: the limit of cards or of memory is reached. */
static struct card_in *cards_add_card(struct source *src)
{
    struct cards *s = src->set;
    struct card_in *c;

    if (s->n == CARDS_MAX)
        return NULL;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->list = mem_resize(s->list, s->cap, sizeof(*s->list));
    }
    c = arena_alloc(&s->arena, sizeof(*c));
    if (!c)
        return NULL;
    c->file = src->file;
    s->list[s->n++] = c;
    return c;
}

static enum err spoil(struct source *src, struct card_in *c, enum err e,
                      const char *fmt, ...) PRINTF_LIKE(4, 5);
static enum err spoil(struct source *src, struct card_in *c, enum err e,
                      const char *fmt, ...)
{
    struct why why;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why.text, sizeof(why.text), fmt, ap);
    va_end(ap);
    c->json = NULL;
    c->err = e;
    c->why = str_of(arena_strdup(&src->set->arena, str_of(why.text)));
    return OK;
}

/* base: the offset in the text from which `at` of the values counts. */
static enum err cards_take_value(struct source *src, const struct json *v,
                                 size_t base)
{
    struct card_in *c = cards_add_card(src);
    const struct card_in *first;
    struct cards *s = src->set;
    char *lower;

    if (!c)
        return ERR_LIMIT;
    /* Values come in the order of the text. */
    for (size_t end;
         (end = str_find(src->text, '\n', src->line_at)) < base + v->at;
         src->line_at = end + 1)
        src->line++;
    c->text = str_sub(src->text, src->line_at, src->text.n);
    c->base = base - src->line_at;
    c->first_line = c->line = src->line;
    c->col = (unsigned)(base + v->at - src->line_at) + 1;
    c->json = v;
    c->name = json_str_or(json_get(v, STR("name")), STR(""));
    if (v->type != JSON_OBJ)
        return spoil(src, c, ERR_BAD_REQUEST, "a card is an object, { ... }");
    if (!c->name.n || c->name.n > AGENT_NAME_MAX)
        return OK;
    lower = arena_strdup(&s->arena, c->name);
    if (!lower)
        return ERR_LIMIT;
    for (size_t i = 0; i < c->name.n; i++)
        lower[i] = str_lower(lower[i]);
    first = map_get(&s->by_name, (struct str){lower, c->name.n});
    if (!first)
        return map_put(&s->by_name, (struct str){lower, c->name.n}, c);
    return spoil(src, c, ERR_BAD_REQUEST,
                 "the name \"%.*s\" is used twice, first at %.*s:%u",
                 STR_ARG(str_head(c->name, 128)),
                 STR_ARG(str_head(first->file, 256)), first->line);
}

static enum err cards_add_complaint(struct source *src, unsigned line,
                                    unsigned col, enum err e, const char *words)
{
    struct card_in *c = cards_add_card(src);

    if (!c)
        return ERR_LIMIT;
    c->line = line;
    c->col = col;
    return spoil(src, c, e, "%s", words);
}

/* Blank, or only a comment. */
static bool is_empty_line(struct str line)
{
    line = str_trim(line);
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    return !line.n || str_starts(line, STR("//"));
}

static struct json *cards_parse_text(struct source *src, struct str text,
                                     struct json_error *err)
{
    if (FAULT("cards.parse")) {
        *err = (struct json_error){"too large", 0, 1, 1, ERR_LIMIT};
        return NULL;
    }
    return json_parse(&src->set->arena, text, JSON_WITH_COMMENTS, err);
}

static enum err take_lines(struct source *src)
{
    struct str rest = src->text;
    enum err e = OK;

    for (unsigned n = 1; rest.n && !e; n++) {
        struct str line = str_cut(&rest, '\n');
        struct json_error err;
        struct json *v;

        if (is_empty_line(line))
            continue;
        v = cards_parse_text(src, line, &err);
        e = v ? cards_take_value(src, v, (size_t)(line.p - src->text.p))
              : cards_add_complaint(src, n, err.col, ERR_SYNTAX, err.what);
    }
    return e;
}

/* True if the first line that is not empty is a card, and others follow. */
static bool is_lines(struct source *src)
{
    struct str rest = src->text, line = {NULL, 0};
    struct json_error err;
    struct json *v;

    while (rest.n && is_empty_line(line))
        line = str_cut(&rest, '\n');
    v = rest.n ? cards_parse_text(src, line, &err) : NULL;
    return v && v->type == JSON_OBJ;
}

static bool ends_in(struct str s, struct str tail)
{
    return s.n > tail.n && str_eq_nocase(str_sub(s, s.n - tail.n, s.n), tail);
}

static enum err cards_split_file(struct source *src)
{
    struct str rest = src->text;
    struct json_error err;
    struct json *v;
    bool is_blank = true;
    enum err e = OK;

    while (rest.n && is_blank)
        is_blank = is_empty_line(str_cut(&rest, '\n'));
    if (is_blank)
        return cards_add_complaint(src, 0, 0, ERR_BAD_REQUEST,
                                   "there is no card in it");
    if (ends_in(src->file, STR(".jsonl")))
        return take_lines(src);
    v = cards_parse_text(src, src->text, &err);
    if (!v && is_lines(src))
        return take_lines(src);
    if (!v)
        return cards_add_complaint(src, err.line, err.col, ERR_SYNTAX,
                                   err.what);
    if (v->type != JSON_ARR)
        return cards_take_value(src, v, 0);
    if (!v->kids.n)
        return cards_add_complaint(src, 0, 0, ERR_BAD_REQUEST,
                                   "there is no card in it");
    for (struct json *k = v->kids.first; k && !e; k = k->next)
        e = cards_take_value(src, k, 0);
    return e;
}

enum err cards_add_text(struct cards *s, struct str file, struct str text)
{
    static const struct str mark = {"\xef\xbb\xbf", 3};
    struct source src = {.set = s, .line = 1};
    char *f = arena_strdup(&s->arena, file);
    char *t = FAULT("cards.copy") ? NULL : arena_strdup(&s->arena, text);

    if (!f || !t)
        return ERR_NOMEM;
    src.file = (struct str){f, file.n};
    src.text = (struct str){t, text.n};
    /* Some editors put a byte order mark before UTF-8. */
    if (str_starts(src.text, mark))
        src.text = str_sub(src.text, mark.n, src.text.n);
    return cards_split_file(&src);
}

/* Files. */

/* Report a problem of the whole file. */
static enum err cards_report(struct cards *s, const char *path, enum err e,
                             const char *fmt, ...) PRINTF_LIKE(4, 5);
static enum err cards_report(struct cards *s, const char *path, enum err e,
                             const char *fmt, ...)
{
    char *file = arena_strdup(&s->arena, str_of(path));
    struct source src = {.set = s, .file = str_of(file)};
    char words[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    return file ? cards_add_complaint(&src, 0, 0, e, words) : ERR_NOMEM;
}

static enum err add_open(struct cards *s, const char *file, int fd)
{
    struct buf text;
    enum err e;

    buf_init(&text, CARDS_FILE_BYTES + SLURP_BYTES);
    e = slurp(fd, &text, CARDS_FILE_BYTES);
    if (e == ERR_IO)
        e = cards_report(s, file, e, "cannot be read: %s", strerror(errno));
    else if (e == ERR_LIMIT)
        e = cards_report(s, file, e,
                         "is larger than %d MiB: put it into several files",
                         CARDS_FILE_BYTES / (1024 * 1024));
    else if (!e)
        e = cards_add_text(s, str_of(file), buf_str(&text));
    buf_fini(&text);
    return e;
}

static enum err add_file(struct cards *s, const char *path)
{
    int fd = FAULT("cards.open") ? (errno = EIO, -1)
                                 : open(path, O_RDONLY | O_CLOEXEC);
    enum err e;

    if (fd < 0)
        return cards_report(s, path, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                            "cannot be opened: %s", strerror(errno));
    e = add_open(s, path, fd);
    close(fd);
    return e;
}

/* Folders. */

static int wants(const struct dirent *d)
{
    struct str name = str_of(d->d_name);

    return name.p[0] != '.' &&
           (ends_in(name, STR(".json")) || ends_in(name, STR(".jsonc")));
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum err add_folder(struct cards *s, const char *folder)
{
    struct dirent **found = NULL;
    int n = FAULT("cards.folder") ? (errno = EIO, -1)
                                  : scandir(folder, &found, wants, by_bytes);
    bool has_slash = folder[strlen(folder) - 1] == '/';
    size_t n_files = 0;
    enum err e;

    if (n < 0)
        return cards_report(s, folder, ERR_IO, "cannot be read: %s",
                            strerror(errno));
    e = n > CARDS_FILES_MAX ? ERR_LIMIT : OK;
    for (int i = 0; i < n && !e; i++) {
        struct stat st;
        char *path;

        if (asprintf(&path, "%s%s%s", folder, has_slash ? "" : "/",
                     found[i]->d_name) < 0) {
            e = ERR_NOMEM;
            break;
        }
        /* Skip everything but files, and report dangling links. */
        if (stat(path, &st) || S_ISREG(st.st_mode)) {
            e = add_file(s, path);
            n_files++;
        }
        free(path);
    }
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(found);
    if (!e && !n_files)
        e = cards_report(s, folder, ERR_NOT_FOUND,
                         "there is no *.json or *.jsonc in "
                         "this folder");
    return e;
}

enum err cards_add_path(struct cards *s, const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return add_open(s, "stdin", STDIN_FILENO);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_folder(s, path);
    return add_file(s, path);
}

/* Places. */

/* A step of a pointer is a key, in which ~1 is a slash and ~0 a tilde. */
static bool is_key(struct str key, struct str step)
{
    size_t n = 0;

    for (size_t i = 0; i < step.n; i++, n++) {
        char ch = step.p[i];

        if (ch == '~' && i + 1 < step.n &&
            (step.p[i + 1] == '0' || step.p[i + 1] == '1'))
            ch = step.p[++i] == '1' ? '/' : '~';
        if (n >= key.n || key.p[n] != ch)
            return false;
    }
    return n == key.n;
}

static const struct json *json_step_into(const struct json *v, struct str step)
{
    int64_t i;

    if (v->type == JSON_ARR && str_to_i64(step, &i) == OK && i >= 0)
        return json_at(v, (size_t)i);
    if (v->type == JSON_OBJ)
        JSON_EACH(kid, v)
    if (is_key(kid->key, step))
        return kid;
    return NULL;
}

void cards_place(const struct card_in *c, struct str pointer, unsigned *line,
                 unsigned *col)
{
    const struct json *v = c->json, *next = v;

    if (v && pointer.n && pointer.p[0] == '/')
        str_cut(&pointer, '/');
    while (v && next && pointer.n) {
        next = json_step_into(v, str_cut(&pointer, '/'));
        v = next ? next : v;
    }
    if (!v || v == c->json) {
        *line = c->line;
        *col = c->col;
        return;
    }
    json_where(c->text, c->base + v->at, line, col);
    *line += c->first_line - 1;
}
