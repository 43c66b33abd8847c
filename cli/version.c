/* version: which signalbox this is, and which libraries it runs with. */
#include "cli/cli.h"

#include <curl/curl.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <uv.h>
#include <zlib.h>

#include "base/json.h"

#define TEXT_OF(x) #x
#define DOTTED(major, minor, patch) \
    TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

/* One row per library; a new one adds a line. */
size_t cli_libs(struct cli_lib libs[CLI_LIBS_MAX])
{
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    const struct cli_lib rows[] = {
        {"libuv", DOTTED(UV_VERSION_MAJOR, UV_VERSION_MINOR, UV_VERSION_PATCH),
         uv_version_string(), uv_version() < UV_VERSION_HEX},
        {"libcurl", LIBCURL_VERSION, curl->version,
         curl->version_num < LIBCURL_VERSION_NUM},
        {"openssl", OPENSSL_VERSION_STR,
         OpenSSL_version(OPENSSL_VERSION_STRING),
         OpenSSL_version_num() < OPENSSL_VERSION_NUMBER},
        {"sqlite", SQLITE_VERSION, sqlite3_libversion(),
         sqlite3_libversion_number() < SQLITE_VERSION_NUMBER},
        {"zlib", ZLIB_VERSION, zlibVersion(),
         strverscmp(zlibVersion(), ZLIB_VERSION) < 0},
    };
    size_t n = sizeof(rows) / sizeof(rows[0]);

    _Static_assert(sizeof(rows) / sizeof(rows[0]) <= CLI_LIBS_MAX,
                   "as many rows as there is room for");
    memcpy(libs, rows, sizeof(rows));
    return n;
}

enum exit_status cli_version(struct cli *c)
{
    struct cli_lib libs[CLI_LIBS_MAX];
    size_t n = cli_libs(libs);
    struct json_out o = json_out(&c->out);

    if (!c->json) {
        buf_add_str(&c->out, STR("signalbox " SIGNALBOX_VERSION "\n"));
        return EXIT_DONE;
    }
    json_open(&o, '{');
    json_member_text(&o, "version", STR(SIGNALBOX_VERSION));
    json_key(&o, STR("libs"));
    json_open(&o, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(&o, '{');
        json_member_text(&o, "name", str_of(libs[i].name));
        json_member_text(&o, "built", str_of(libs[i].built));
        json_member_text(&o, "running", str_of(libs[i].loaded));
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
    return EXIT_DONE;
}
