/* A tar file is a sequence of headers of one block, each followed by the bytes
 * of its file and zeros up to the next block. The state determines the meaning
 * of the next byte. Incomplete blocks are collected, so the size of the input
 * pieces makes no difference.
 *
 * Rejected: libarchive. It reads dozens of formats, and this is all that is
 * needed of one. */
#include "lab/untar.h"

#include <stdio.h>

/* Offsets and sizes in a header. */
enum {
    NAME_AT = 0,
    NAME_BYTES = 100,
    SIZE_AT = 124,
    SUM_AT = 148,
    KIND_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155,
    SIZE_BYTES = 12,
    SUM_BYTES = 8,
};

enum kind { FILE_KIND, EMPTY_KIND, PAX_KIND, GLOBAL_KIND, NAME_KIND, NO_KIND };

void untar_init(struct untar *u, const struct untar_handler *on, void *ctx)
{
    *u = (struct untar){.on = on, .ctx = ctx};
}

static enum err untar_bad(struct why *why, const char *what)
{
    return why_err(why, ERR_BAD_REQUEST, "the tar file is damaged: %s", what);
}

/* One header. */

/* Octal digits after blanks, followed by blanks or NULs. */
static bool untar_read_octal(struct str field, uint64_t *out)
{
    size_t i = 0, n_digits = 0;

    *out = 0;
    while (i < field.n && field.p[i] == ' ')
        i++;
    for (; i < field.n && field.p[i] >= '0' && field.p[i] <= '7'; i++) {
        *out = *out * 8 + (uint64_t)(field.p[i] - '0');
        n_digits++;
    }
    for (; i < field.n; i++)
        if (field.p[i] != ' ' && field.p[i] != '\0')
            return false;
    return n_digits > 0;
}

static struct str untar_field(const struct untar *u, size_t at, size_t bytes)
{
    return (struct str){u->block + at, bytes};
}

/* The field up to its NUL, if it has one. */
static struct str untar_text_field(const struct untar *u, size_t at,
                                   size_t bytes)
{
    struct str f = untar_field(u, at, bytes);

    f.n = str_find(f, '\0', 0);
    return f;
}

/* The checksum covers the header, with blanks in its own place. */
static bool untar_checksum_matches(const struct untar *u)
{
    uint64_t written, sum = SUM_BYTES * ' ';

    for (size_t i = 0; i < UNTAR_BLOCK; i++)
        if (i < SUM_AT || i >= SUM_AT + SUM_BYTES)
            sum += (unsigned char)u->block[i];
    return untar_read_octal(untar_field(u, SUM_AT, SUM_BYTES), &written) &&
           written == sum;
}

static enum kind untar_member_kind(char c)
{
    switch (c) {
    case '0':
    case '\0': return FILE_KIND;
    case '1': /* links */
    case '2':
    case '5': return EMPTY_KIND; /* a folder */
    case 'x': return PAX_KIND;
    case 'g': return GLOBAL_KIND;
    case 'L': /* GNU tar's long names of files and links */
    case 'K': return NAME_KIND;
    default: return NO_KIND;
    }
}

/* Sets the name from the header itself. */
static void untar_read_name(struct untar *u, bool is_gnu)
{
    struct str name = untar_text_field(u, NAME_AT, NAME_BYTES);
    struct str prefix =
        untar_text_field(u, PREFIX_AT, is_gnu ? 0 : PREFIX_BYTES);
    int n = snprintf(u->name, sizeof(u->name), "%.*s%s%.*s", STR_ARG(prefix),
                     prefix.n ? "/" : "", STR_ARG(name));

    _Static_assert(NAME_BYTES + 1 + PREFIX_BYTES <= UNTAR_NAME_MAX,
                   "room for both");
    u->n_name = (size_t)n;
}

static void untar_begin_body(struct untar *u, uint64_t bytes)
{
    u->left = bytes;
    u->padding = (uint32_t)(-bytes % UNTAR_BLOCK);
    u->n_gathered = 0;
    u->state = bytes ? UNTAR_BODY : UNTAR_HEAD;
}

static enum err untar_begin_member(struct untar *u, enum kind kind, bool is_gnu,
                                   uint64_t bytes, struct why *why)
{
    bool is_file = kind == FILE_KIND;
    enum err e = OK;

    if (u->has_size)
        bytes = u->size;
    if (!is_file && bytes)
        return untar_bad(why, "a link or a folder has a length");
    if (!u->n_name)
        untar_read_name(u, is_gnu);
    u->is_wanted = false;
    if (!u->is_unnamed)
        e = u->on->on_member(u->ctx, (struct str){u->name, u->n_name}, is_file,
                             bytes, &u->is_wanted, why);
    u->is_wanted = u->is_wanted && is_file;
    u->n_name = 0;
    u->has_size = u->is_unnamed = false;
    untar_begin_body(u, bytes);
    if (!e && u->is_wanted && !bytes)
        e = u->on->on_whole(u->ctx, why);
    return e;
}

/* Begins a member that describes the next file. */
static enum err untar_begin_extension(struct untar *u, enum kind kind,
                                      uint64_t bytes, struct why *why)
{
    if (bytes > UNTAR_PAX_MAX)
        return why_err(why, ERR_LIMIT,
                       "a header in the tar file is longer than %d bytes",
                       UNTAR_PAX_MAX);
    /* GNU tar writes two for a link with long names. */
    if (u->n_name || u->has_size || (u->is_unnamed && kind != NAME_KIND))
        return untar_bad(why, "two headers describe the same file");
    u->is_wanted = false;
    u->is_global = kind == GLOBAL_KIND;
    u->is_unnamed = kind == NAME_KIND;
    untar_begin_body(u, bytes);
    if (bytes && kind != NAME_KIND)
        u->state = UNTAR_PAX;
    return OK;
}

static enum err untar_read_header(struct untar *u, struct why *why)
{
    struct str magic = untar_field(u, MAGIC_AT, 8);
    bool is_gnu = str_eq(magic, STR("ustar  \0"));
    enum kind kind = untar_member_kind(u->block[KIND_AT]);
    uint64_t bytes;

    if (!is_gnu && !str_eq(magic, STR("ustar\0"
                                      "00")))
        return why_err(why, ERR_BAD_REQUEST, "this is not a tar file");
    if (!untar_checksum_matches(u))
        return untar_bad(why, "the checksum of a header is wrong");
    if (!untar_read_octal(untar_field(u, SIZE_AT, SIZE_BYTES), &bytes))
        return untar_bad(why, "the length of a file is not a number");
    if (kind == NO_KIND)
        return untar_bad(why, "there is a member of an unsupported type");
    if (++u->n_members > UNTAR_MEMBERS_MAX)
        return why_err(why, ERR_LIMIT,
                       "there are more than %d members in the tar file",
                       UNTAR_MEMBERS_MAX);
    if (kind == FILE_KIND || kind == EMPTY_KIND)
        return untar_begin_member(u, kind, is_gnu, bytes, why);
    return untar_begin_extension(u, kind, bytes, why);
}

/* Two blocks of zeros mark the end. */
static enum err untar_read_block(struct untar *u, struct why *why)
{
    bool is_zero = true;

    for (size_t i = 0; i < UNTAR_BLOCK && is_zero; i++)
        is_zero = u->block[i] == '\0';
    u->n_gathered = 0;
    if (!is_zero && u->n_zero_blocks)
        return untar_bad(why, "there are bytes after its end");
    if (!is_zero)
        return untar_read_header(u, why);
    if (u->n_name || u->has_size || u->is_unnamed)
        return untar_bad(why, "a header describes a missing file");
    if (++u->n_zero_blocks == 2)
        u->state = UNTAR_OVER;
    return OK;
}

/* A pax header: lines of "LENGTH KEY=VALUE\n", with the length of the line. */

static bool untar_read_decimal(struct str s, uint64_t *out)
{
    int64_t n;

    if (!s.n || s.p[0] < '0' || s.p[0] > '9' || str_to_i64(s, &n) != OK)
        return false;
    *out = (uint64_t)n;
    return true;
}

static enum err untar_read_record(struct untar *u, struct str key,
                                  struct str value, struct why *why)
{
    bool is_path = str_eq(key, STR("path")), is_size = str_eq(key, STR("size"));

    if (str_starts(key, STR("GNU.sparse.")))
        return untar_bad(why, "there is a sparse file, which is not supported");
    if (u->is_global && (is_path || is_size))
        return untar_bad(why, "a global header sets a name or a length");
    if ((is_path && (u->n_name || u->is_unnamed)) || (is_size && u->has_size))
        return untar_bad(why,
                         "a header sets the name or length of a file twice");
    if (is_path && (!value.n || str_find(value, '\0', 0) < value.n))
        return untar_bad(why, "the name of a file is invalid");
    if (is_path && value.n > UNTAR_NAME_MAX) {
        u->is_unnamed = true;
    } else if (is_path) {
        memcpy(u->name, value.p, value.n);
        u->n_name = value.n;
    }
    if (is_size && !untar_read_decimal(value, &u->size))
        return untar_bad(why, "the length of a file is not a number");
    u->has_size = u->has_size || is_size;
    return OK;
}

static enum err untar_read_pax(struct untar *u, struct why *why)
{
    struct str rest = {u->pax, u->n_gathered};
    enum err e = OK;

    while (rest.n && !e) {
        struct str line = rest, value;
        struct str digits = str_cut(&line, ' ');
        uint64_t n;

        if (digits.n > 5 || !untar_read_decimal(digits, &n) || n > rest.n ||
            n < digits.n + 4 || rest.p[n - 1] != '\n')
            return untar_bad(why, "a pax header cannot be read");
        value = str_sub(rest, digits.n + 1, n - 1);
        line = str_cut(&value, '=');
        if (line.n + digits.n + 2 >= n)
            return untar_bad(why, "a pax header cannot be read");
        e = untar_read_record(u, line, value, why);
        rest = str_sub(rest, n, rest.n);
    }
    return e;
}

/* Input. */

static enum err untar_take_body(struct untar *u, struct str bytes,
                                struct why *why)
{
    enum err e = OK;

    u->left -= bytes.n;
    if (u->state == UNTAR_PAX) {
        memcpy(u->pax + u->n_gathered, bytes.p, bytes.n);
        u->n_gathered += bytes.n;
        if (!u->left)
            e = untar_read_pax(u, why);
    } else if (u->is_wanted) {
        e = u->on->on_bytes(u->ctx, bytes, why);
        if (!e && !u->left)
            e = u->on->on_whole(u->ctx, why);
    }
    if (!u->left) {
        u->n_gathered = 0;
        u->state = u->padding ? UNTAR_SKIP : UNTAR_HEAD;
    }
    return e;
}

/* The number of bytes that the state accepts at once. */
static uint64_t untar_room(const struct untar *u)
{
    switch (u->state) {
    case UNTAR_HEAD: return UNTAR_BLOCK - u->n_gathered;
    case UNTAR_BODY:
    case UNTAR_PAX: return u->left;
    case UNTAR_SKIP: return u->padding;
    case UNTAR_OVER: break;
    }
    return UINT64_MAX;
}

static enum err untar_take(struct untar *u, struct str bytes, struct why *why)
{
    switch (u->state) {
    case UNTAR_HEAD:
        memcpy(u->block + u->n_gathered, bytes.p, bytes.n);
        u->n_gathered += bytes.n;
        return u->n_gathered == UNTAR_BLOCK ? untar_read_block(u, why) : OK;
    case UNTAR_BODY:
    case UNTAR_PAX: return untar_take_body(u, bytes, why);
    case UNTAR_OVER:
        for (size_t i = 0; i < bytes.n; i++)
            if (bytes.p[i])
                return untar_bad(why, "there are bytes after its end");
        return OK;
    case UNTAR_SKIP:
        u->padding -= (uint32_t)bytes.n;
        u->state = u->padding ? UNTAR_SKIP : UNTAR_HEAD;
        break;
    }
    return OK;
}

enum err untar_feed(struct untar *u, struct str bytes, struct why *why)
{
    enum err e = OK;

    while (bytes.n && !e) {
        uint64_t most = untar_room(u);
        struct str now = bytes;

        if (now.n > most)
            now.n = (size_t)most;
        e = untar_take(u, now, why);
        bytes = str_sub(bytes, now.n, bytes.n);
    }
    return e;
}

enum err untar_end(const struct untar *u, struct why *why)
{
    if (u->state == UNTAR_OVER)
        return OK;
    return why_err(why, ERR_BAD_REQUEST, "%s",
                   u->n_members ? "the tar file is truncated"
                                : "the tar file is empty");
}
