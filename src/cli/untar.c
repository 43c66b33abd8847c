/* A tar is headers of one block each, every one followed by the bytes of its
 * file and zeros up to the next block. The state says what the next byte is;
 * what is not whole yet is gathered, so that how the bytes were cut makes no
 * difference.
 *
 * libarchive was turned down: it reads dozens of formats, and all that is
 * needed of one is here. */
#include "cli/untar.h"

#include <stdio.h>

/* The header, by the bytes. */
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

/* What a kind of member is to us. */
enum kind { FILE_KIND, EMPTY_KIND, PAX_KIND, GLOBAL_KIND, NAME_KIND, NO_KIND };

void untar_init(struct untar *u, const struct untar_handler *on, void *ctx)
{
    *u = (struct untar){.on = on, .ctx = ctx};
}

static enum err bad(struct why *why, const char *what)
{
    return why_err(why, ERR_BAD_REQUEST, "the tar file is broken: %s", what);
}

/* One header. */

/* Digits of eight, blanks before them, blanks or NULs behind. */
static bool read_octal(struct str field, uint64_t *out)
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

static struct str field(const struct untar *u, size_t at, size_t bytes)
{
    return (struct str){u->block + at, bytes};
}

/* Up to its NUL, if it has one. */
static struct str text_field(const struct untar *u, size_t at, size_t bytes)
{
    struct str f = field(u, at, bytes);

    f.n = str_find(f, '\0', 0);
    return f;
}

/* The sum is of all bytes, its own as blanks. */
static bool has_right_sum(const struct untar *u)
{
    uint64_t said, sum = SUM_BYTES * ' ';

    for (size_t i = 0; i < UNTAR_BLOCK; i++)
        if (i < SUM_AT || i >= SUM_AT + SUM_BYTES)
            sum += (unsigned char)u->block[i];
    return read_octal(field(u, SUM_AT, SUM_BYTES), &said) && said == sum;
}

static enum kind kind_of(char c)
{
    switch (c) {
    case '0':
    case '\0': return FILE_KIND;
    case '1': /* links */
    case '2':
    case '5': return EMPTY_KIND; /* a folder */
    case 'x': return PAX_KIND;
    case 'g': return GLOBAL_KIND;
    case 'L': /* GNU tar's long names, of files and links */
    case 'K': return NAME_KIND;
    default: return NO_KIND;
    }
}

/* What the header itself calls it. */
static void read_name(struct untar *u, bool is_gnu)
{
    struct str name = text_field(u, NAME_AT, NAME_BYTES);
    struct str prefix = text_field(u, PREFIX_AT, is_gnu ? 0 : PREFIX_BYTES);
    int n = snprintf(u->name, sizeof(u->name), "%.*s%s%.*s", STR_ARG(prefix),
                     prefix.n ? "/" : "", STR_ARG(name));

    _Static_assert(NAME_BYTES + 1 + PREFIX_BYTES <= UNTAR_NAME_MAX,
                   "room for both");
    u->n_name = (size_t)n;
}

static void forget(struct untar *u)
{
    u->n_name = 0;
    u->has_size = u->is_unnamed = false;
}

static void begin_body(struct untar *u, uint64_t bytes)
{
    u->left = bytes;
    u->padding = (uint32_t)(-bytes % UNTAR_BLOCK);
    u->n_gathered = 0;
    u->state = bytes ? UNTAR_BODY : UNTAR_HEAD;
}

static enum err begin_member(struct untar *u, enum kind kind, bool is_gnu,
                             uint64_t bytes, struct why *why)
{
    bool is_file = kind == FILE_KIND;
    enum err e = OK;

    if (u->has_size)
        bytes = u->size;
    if (!is_file && bytes)
        return bad(why, "a link or a folder has a length");
    if (!u->n_name)
        read_name(u, is_gnu);
    u->is_wanted = false;
    if (!u->is_unnamed)
        e = u->on->on_member(u->ctx, (struct str){u->name, u->n_name}, is_file,
                             bytes, &u->is_wanted, why);
    u->is_wanted = u->is_wanted && is_file;
    forget(u);
    begin_body(u, bytes);
    if (!e && u->is_wanted && !bytes)
        e = u->on->on_whole(u->ctx, why);
    return e;
}

/* What tells of the file behind it. */
static enum err begin_remark(struct untar *u, enum kind kind, uint64_t bytes,
                             struct why *why)
{
    if (bytes > UNTAR_PAX_MAX)
        return why_err(why, ERR_LIMIT,
                       "a header in the tar file is longer than %d bytes",
                       UNTAR_PAX_MAX);
    /* GNU tar has two for a link with long names. */
    if (u->n_name || u->has_size || (u->is_unnamed && kind != NAME_KIND))
        return bad(why, "two headers tell of the same file");
    u->is_wanted = false;
    u->is_global = kind == GLOBAL_KIND;
    u->is_unnamed = kind == NAME_KIND;
    begin_body(u, bytes);
    if (bytes && kind != NAME_KIND)
        u->state = UNTAR_PAX;
    return OK;
}

static enum err read_header(struct untar *u, struct why *why)
{
    struct str magic = field(u, MAGIC_AT, 8);
    bool is_gnu = str_eq(magic, STR("ustar  \0"));
    enum kind kind = kind_of(u->block[KIND_AT]);
    uint64_t bytes;

    if (!is_gnu && !str_eq(magic, STR("ustar\0"
                                      "00")))
        return why_err(why, ERR_BAD_REQUEST, "this is no tar file");
    if (!has_right_sum(u))
        return bad(why, "the check sum of a header does not fit");
    if (!read_octal(field(u, SIZE_AT, SIZE_BYTES), &bytes))
        return bad(why, "the length of a file is no number");
    if (kind == NO_KIND)
        return bad(why, "there is a member of a kind that is not taken");
    if (++u->n_members > UNTAR_MEMBERS_MAX)
        return why_err(why, ERR_LIMIT,
                       "there are more than %d members in the tar file",
                       UNTAR_MEMBERS_MAX);
    if (kind == FILE_KIND || kind == EMPTY_KIND)
        return begin_member(u, kind, is_gnu, bytes, why);
    return begin_remark(u, kind, bytes, why);
}

/* Two blocks of zeros are the end. */
static enum err read_block(struct untar *u, struct why *why)
{
    bool is_zero = true;

    for (size_t i = 0; i < UNTAR_BLOCK && is_zero; i++)
        is_zero = u->block[i] == '\0';
    u->n_gathered = 0;
    if (!is_zero && u->n_zero_blocks)
        return bad(why, "there is more behind its end");
    if (!is_zero)
        return read_header(u, why);
    if (u->n_name || u->has_size || u->is_unnamed)
        return bad(why, "a header tells of a file that is not there");
    if (++u->n_zero_blocks == 2)
        u->state = UNTAR_OVER;
    return OK;
}

/* A pax header: lines of "LENGTH KEY=VALUE\n", the length that of all of it. */

static bool read_decimal(struct str s, uint64_t *out)
{
    int64_t n;

    if (!s.n || s.p[0] < '0' || s.p[0] > '9' || str_to_i64(s, &n) != OK)
        return false;
    *out = (uint64_t)n;
    return true;
}

static enum err read_record(struct untar *u, struct str key, struct str value,
                            struct why *why)
{
    bool is_path = str_eq(key, STR("path")), is_size = str_eq(key, STR("size"));

    if (str_starts(key, STR("GNU.sparse.")))
        return bad(why, "there is a sparse file, which is not taken");
    if (u->is_global && (is_path || is_size))
        return bad(why, "one name or length is said of all files");
    if ((is_path && (u->n_name || u->is_unnamed)) || (is_size && u->has_size))
        return bad(why, "a header says the name or length of a file twice");
    if (is_path && (!value.n || str_find(value, '\0', 0) < value.n))
        return bad(why, "the name of a file is none");
    if (is_path && value.n > UNTAR_NAME_MAX) {
        u->is_unnamed = true;
    } else if (is_path) {
        memcpy(u->name, value.p, value.n);
        u->n_name = value.n;
    }
    if (is_size && !read_decimal(value, &u->size))
        return bad(why, "the length of a file is no number");
    u->has_size = u->has_size || is_size;
    return OK;
}

static enum err read_pax(struct untar *u, struct why *why)
{
    struct str rest = {u->pax, u->n_gathered};
    enum err e = OK;

    while (rest.n && !e) {
        struct str line = rest, value;
        struct str digits = str_cut(&line, ' ');
        uint64_t n;

        if (digits.n > 5 || !read_decimal(digits, &n) || n > rest.n ||
            n < digits.n + 4 || rest.p[n - 1] != '\n')
            return bad(why, "a pax header cannot be read");
        value = str_sub(rest, digits.n + 1, n - 1);
        line = str_cut(&value, '=');
        if (line.n + digits.n + 2 >= n)
            return bad(why, "a pax header cannot be read");
        e = read_record(u, line, value, why);
        rest = str_sub(rest, n, rest.n);
    }
    return e;
}

/* Taking what comes. */

/* As much of the body as is here. */
static enum err take_body(struct untar *u, struct str bytes, struct why *why)
{
    enum err e = OK;

    u->left -= bytes.n;
    if (u->state == UNTAR_PAX) {
        memcpy(u->pax + u->n_gathered, bytes.p, bytes.n);
        u->n_gathered += bytes.n;
        if (!u->left)
            e = read_pax(u, why);
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

static enum err take_block(struct untar *u, struct str bytes, struct why *why)
{
    memcpy(u->block + u->n_gathered, bytes.p, bytes.n);
    u->n_gathered += bytes.n;
    return u->n_gathered == UNTAR_BLOCK ? read_block(u, why) : OK;
}

static enum err take_zeros(struct str bytes, struct why *why)
{
    for (size_t i = 0; i < bytes.n; i++)
        if (bytes.p[i])
            return bad(why, "there is more behind its end");
    return OK;
}

/* How many bytes the state can take at once. */
static uint64_t room(const struct untar *u)
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

static enum err take(struct untar *u, struct str bytes, struct why *why)
{
    switch (u->state) {
    case UNTAR_HEAD: return take_block(u, bytes, why);
    case UNTAR_BODY:
    case UNTAR_PAX: return take_body(u, bytes, why);
    case UNTAR_OVER: return take_zeros(bytes, why);
    case UNTAR_SKIP: break;
    }
    u->padding -= (uint32_t)bytes.n;
    u->state = u->padding ? UNTAR_SKIP : UNTAR_HEAD;
    return OK;
}

enum err untar_feed(struct untar *u, struct str bytes, struct why *why)
{
    enum err e = OK;

    while (bytes.n && !e) {
        uint64_t most = room(u);
        struct str now = bytes;

        if (now.n > most)
            now.n = (size_t)most;
        e = take(u, now, why);
        bytes = str_sub(bytes, now.n, bytes.n);
    }
    return e;
}

enum err untar_end(const struct untar *u, struct why *why)
{
    if (u->state == UNTAR_OVER)
        return OK;
    return why_err(why, ERR_BAD_REQUEST, "%s",
                   u->n_members ? "the tar file is cut off"
                                : "there is nothing in the tar file");
}
