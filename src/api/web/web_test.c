/* The files in the binary, their HTTP headers, and that no path leads out of a
 * folder on the disk. */
#include "api/web/web.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "test/lib/folder.h"
#include "test/t.h"

TEST(every_packed_file_is_found_by_its_path_and_has_a_type)
{
    const struct web_file *f;
    size_t n = 0;

    for (; (f = web_at(n)); n++) {
        CHECK(web_find(f->path) == f);
        CHECK(web_type(f->path).n > 0);
        CHECK(f->plain.n > 0);
        CHECK_INT(strlen(f->tag), WEB_TAG_CHARS);
        CHECK(n == 0 || str_cmp(web_at(n - 1)->path, f->path) < 0);
    }
    CHECK(n > 5 && !web_at(n) && !web_at((size_t)-1));
    CHECK(web_find(WEB_INDEX) && web_find(STR("main.js")));
    CHECK(web_find(STR("vendor/preact.js")) && web_find(STR("vendor/htm.js")));
}

TEST(what_is_not_packed_is_not_found)
{
    static const char *const none[] = {
        "",         "/",        "main.jsx",    "main.j",       "Main.js",
        "/main.js", "main.js/", "./main.js",   "vendor",       "vendor/",
        "zzz.js",   "../x",     "main%2ejs",   "package.json", ".npmrc",
        "!",        "~",        "index.html ",
    };

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (web_find(str_of(none[i])))
            T_FAIL("found: %s", none[i]);
}

TEST(the_folder_is_a_hash_and_the_page_names_it)
{
    struct str folder = web_folder(), page = web_find(WEB_INDEX)->plain;
    char link[64];

    CHECK_INT(folder.n, 16);
    for (size_t i = 0; i < folder.n; i++)
        CHECK(strchr("0123456789abcdef", folder.p[i]));
    snprintf(link, sizeof(link), "/assets/%.*s/main.js", STR_ARG(folder));
    CHECK(memmem(page.p, page.n, link, strlen(link)));
    CHECK(!memmem(page.p, page.n, WEB_PLACEHOLDER.p, WEB_PLACEHOLDER.n));
}

/* Unpacked by zlib, which did not pack them. */
TEST(gzip_is_the_same_bytes_and_fewer)
{
    static char out[1024 * 1024];
    const struct web_file *f;
    size_t n_packed = 0;

    for (size_t i = 0; (f = web_at(i)); i++) {
        z_stream z = {.next_in = (Bytef *)(uintptr_t)f->gzip.p,
                      .avail_in = (uInt)f->gzip.n,
                      .next_out = (Bytef *)out,
                      .avail_out = sizeof(out)};

        if (!f->gzip.n)
            continue;
        n_packed++;
        CHECK(f->gzip.n < f->plain.n);
        CHECK_INT(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
        CHECK_INT(inflate(&z, Z_FINISH), Z_STREAM_END);
        CHECK_INT(z.total_out, f->plain.n);
        CHECK(memcmp(out, f->plain.p, f->plain.n) == 0);
        inflateEnd(&z);
    }
    CHECK(n_packed > 3);
}

TEST(types_go_by_the_end_of_the_name)
{
    CHECK(
        str_eq(web_type(STR("a/b.js")), STR("text/javascript; charset=utf-8")));
    CHECK(str_eq(web_type(STR("x.svg")), STR("image/svg+xml")));
    CHECK(web_type(STR("x")).n == 0 && web_type(STR("")).n == 0);
    CHECK(web_type(STR(".js")).n == 0); /* not an ending, but the whole name */
    CHECK(web_type(STR("x.php")).n == 0 && web_type(STR("x.js.bak")).n == 0);
}

TEST(gzip_is_for_who_takes_it)
{
    static const struct {
        const char *header;
        bool takes;
    } rows[] = {
        {"gzip", true},
        {"GZip", true},
        {"x-gzip", true},
        {"deflate, gzip;q=1.0, *;q=0.5", true},
        {"br , gzip ;q=0.001", true},
        {"*", true},
        {"gzip;q=0", false},
        {"gzip; q=0.000", false},
        {"gzip;Q=0.0, *", false},
        {"*, gzip;q=0", false},
        {"*;q=0", false},
        {"*;q=0, gzip", true},
        {"identity", false},
        {"gzipped, agzip", false},
        {"", false},
        {",;,=", false},
        {"gzip;q=", true}, /* an invalid q refuses nothing */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (web_takes_gzip(str_of(rows[i].header)) != rows[i].takes)
            T_FAIL("wrong for: %s", rows[i].header);
}

TEST(a_tag_is_known_alone_in_a_list_and_weak)
{
    struct str tag = STR("\"ab\"");

    CHECK(web_is_known(STR("\"ab\""), tag) && web_is_known(STR(" * "), tag));
    CHECK(web_is_known(STR("\"x\", W/\"ab\" ,\"y\""), tag));
    CHECK(!web_is_known(STR(""), tag) && !web_is_known(STR("ab"), tag));
    CHECK(!web_is_known(STR("\"abc\", \"a\""), tag));
    CHECK(!web_is_known(STR("\"x\", *"), tag));
}

TEST(placeholders_are_filled_wherever_they_are)
{
    struct buf out;

    buf_init(&out, 1024);
    web_fill(&out, STR("%ASSETS%/a %ASSET% %%ASSETS%%ASSETS%"), STR("/x"));
    CHECK(str_eq(buf_str(&out), STR("/x/a %ASSET% %/x/x")));
    buf_fini(&out);
}

/* The disk. */

struct stage {
    char root[64], inside[96];
    struct buf out;
};

static void put_file(const char *folder, const char *name, size_t n)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "w");
    CHECK(f);
    for (size_t i = 0; i < n; i++)
        fputc('x', f);
    CHECK(fclose(f) == 0);
}

static void put_link(const char *to, const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    CHECK(symlink(to, path) == 0);
}

static void begin(struct stage *s)
{
    char path[160];

    snprintf(s->root, sizeof(s->root), "/tmp/web_test.XXXXXX");
    CHECK(mkdtemp(s->root));
    snprintf(s->inside, sizeof(s->inside), "%s/web", s->root);
    CHECK(mkdir(s->inside, 0755) == 0);
    snprintf(path, sizeof(path), "%s/pages", s->inside);
    CHECK(mkdir(path, 0755) == 0);
    snprintf(path, sizeof(path), "%s/webs", s->root);
    CHECK(mkdir(path, 0755) == 0);
    put_file(s->root, "secret.js", 3);
    put_file(path, "near.js", 3);
    put_file(s->inside, "a.js", 5);
    put_file(s->inside, "pages/b.js", 7);
    put_file(s->inside, ".hidden.js", 1);
    put_file(s->inside, "key.pem", 1);
    buf_init(&s->out, WEB_FILE_MAX);
}

static void end(struct stage *s)
{
    buf_fini(&s->out);
    folder_remove(s->root);
}

static enum err get(struct stage *s, const char *path)
{
    buf_clear(&s->out);
    return web_read_file(s->inside, str_of(path), &s->out);
}

TEST(files_of_a_folder_are_read_as_they_are)
{
    struct stage s;

    begin(&s);
    CHECK(get(&s, "a.js") == OK && s.out.n == 5);
    CHECK(get(&s, "pages/b.js") == OK && s.out.n == 7);
    put_file(s.inside, "a.js", 0);
    CHECK(get(&s, "a.js") == OK && s.out.n == 0);
    end(&s);
}

TEST(nothing_outside_the_folder_is_read)
{
    static const char *const bad[] = {
        "../secret.js",
        "pages/../../secret.js",
        "/etc/passwd.js",
        "..",
        ".",
        "",
        "pages",
        "pages/",
        "/a.js",
        "a.js/",
        "pages//b.js",
        "./a.js",
        "pages/../a.js",
        ".hidden.js",
        "key.pem",
        "%2e%2e/secret.js",
        "none.js",
        "a.js\n",
        "pages\\b.js",
        "..js/a.js",
        "a.js/../../x.js",
    };
    struct stage s;

    begin(&s);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (get(&s, bad[i]) != ERR_NOT_FOUND)
            T_FAIL("read: %s", bad[i]);
    CHECK(web_read_file(s.inside, (struct str){"a.js\0.js", 8}, &s.out) ==
          ERR_NOT_FOUND);
    CHECK(web_read_file("/nonexistent/folder", STR("a.js"), &s.out) ==
          ERR_NOT_FOUND);
    end(&s);
}

TEST(links_count_by_where_they_lead)
{
    struct stage s;
    char path[160];

    begin(&s);
    put_link("../a.js", s.inside, "pages/within.js");
    put_link("../secret.js", s.inside, "out.js");
    put_link("..", s.inside, "up");
    put_link("../webs/near.js", s.inside,
             "near.js"); /* "webs" only starts like "web" */
    put_link("loop.js", s.inside, "loop.js");
    CHECK(get(&s, "pages/within.js") == OK && s.out.n == 5);
    CHECK(get(&s, "out.js") == ERR_NOT_FOUND);
    CHECK(get(&s, "up/secret.js") == ERR_NOT_FOUND);
    CHECK(get(&s, "near.js") == ERR_NOT_FOUND);
    CHECK(get(&s, "loop.js") == ERR_NOT_FOUND);
    /* The folder itself may be a link. */
    put_link("web", s.root, "link");
    snprintf(path, sizeof(path), "%s/link/", s.root);
    CHECK(web_read_file(path, STR("a.js"), &s.out) == OK);
    end(&s);
}

TEST(what_is_no_plain_file_is_not_read_nor_waited_for)
{
    struct stage s;
    char path[160];

    begin(&s);
    snprintf(path, sizeof(path), "%s/pipe.js", s.inside);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(get(&s, "pipe.js") == ERR_NOT_FOUND);
    snprintf(path, sizeof(path), "%s/folder.js", s.inside);
    CHECK(mkdir(path, 0700) == 0);
    CHECK(get(&s, "folder.js") == ERR_NOT_FOUND);
    end(&s);
}

TEST(a_file_may_be_so_large_and_no_larger)
{
    struct stage s;

    begin(&s);
    put_file(s.inside, "most.js", WEB_FILE_MAX);
    CHECK(get(&s, "most.js") == OK && s.out.n == WEB_FILE_MAX);
    put_file(s.inside, "more.js", WEB_FILE_MAX + 1);
    CHECK(get(&s, "more.js") == ERR_LIMIT && s.out.n == 0);
    end(&s);
}
