#ifndef API_WEB_WEB_H
#define API_WEB_WEB_H

/* web: the dashboard's files, packed into the binary by tools/web_pack.py.
 *
 * All but index.html are in one folder that is named by a hash of its content:
 * /assets/HASH/main.js. Browsers may keep them for ever; another version has
 * another folder. Developers can serve the files from a folder on the disk
 * instead.
 *
 * Stateless: the files are part of the program. Threads: any. */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
    WEB_TAG_CHARS = 16,
    WEB_FILE_MAX = 4 * 1024 * 1024, /* of a file on the disk */
    WEB_PATH_MAX = 128,             /* of its path in the folder */
};

/* The page itself, and the placeholder for its folder in an unpacked page. */
#define WEB_INDEX       STR("index.html")
#define WEB_PLACEHOLDER STR("%ASSETS%")

struct web_file {
    struct str path;             /* "lib/ui.js" */
    struct str plain, gzip;      /* gzip is empty if it is not smaller */
    char tag[WEB_TAG_CHARS + 1]; /* changes with the content */
};

/* The file of that path, exactly as written, or NULL. */
const struct web_file *web_find(struct str path);

/* File i in the order of paths; NULL past the end. */
const struct web_file *web_at(size_t i);

/* The name of the folder: 16 hexadecimal digits. */
struct str web_folder(void);

/* The Content-Type for a path; empty: the type is not served. */
struct str web_type(struct str path);

/* That Accept-Encoding accepts gzip: by name or "*", and not with q=0. */
bool web_takes_gzip(struct str accept_encoding);

/* That If-None-Match has the tag, which is given with its quotes. */
bool web_is_known(struct str if_none_match, struct str etag);

/* Append the page with its placeholders filled in. */
void web_fill(struct buf *out, struct str page, struct str assets);

/* Append a file in a folder on the disk; waits for the disk. ERR_NOT_FOUND:
 * there is none, it is not a plain file of a known type, or it is outside the
 * folder, by links or dots. ERR_LIMIT: too large. */
MUST_USE enum err web_read_file(const char *folder, struct str path,
                                struct buf *out);

#endif
