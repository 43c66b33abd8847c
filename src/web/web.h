#ifndef WEB_WEB_H
#define WEB_WEB_H

/* web: the dashboard's files, as tools/web_pack.py put them into the binary.
 *
 * All but index.html lie in one folder that is named by a hash of everything
 * in it: /assets/HASH/main.js. A browser may keep them for ever; another
 * version has another folder. For whoever works on the pages, a file can be
 * read from a folder on the disk instead.
 *
 * Owns nothing that changes: the files are part of the program.
 * Threads: any. */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
    WEB_TAG_CHARS = 16,
    WEB_FILE_MAX = 4 * 1024 * 1024, /* of one that is read from the disk */
    WEB_PATH_MAX = 128,             /* of its path below the folder */
};

/* The page itself, and where its folder goes in one that was not packed. */
#define WEB_INDEX       STR("index.html")
#define WEB_PLACEHOLDER STR("%ASSETS%")

struct web_file {
    struct str path;             /* "lib/ui.js" */
    struct str plain, gzip;      /* empty gzip: it would be no smaller */
    char tag[WEB_TAG_CHARS + 1]; /* changes with its bytes */
};

/* NULL: there is none of that path, which is taken as it is written. */
const struct web_file *web_find(struct str path);

/* The file at that place in the order of their paths; NULL past the end. */
const struct web_file *web_at(size_t i);

/* The name of the folder: 16 hexadecimal digits. */
struct str web_folder(void);

/* The Content-Type for a path; empty: of no kind that is served. */
struct str web_type(struct str path);

/* Whether that Accept-Encoding takes gzip: named, or meant by "*", and not
 * with q=0. */
bool web_takes_gzip(struct str accept_encoding);

/* Whether that If-None-Match has the tag, which is given with its quotes. */
bool web_is_known(struct str if_none_match, struct str etag);

/* Add the page, as it is on the disk, with its placeholders filled. */
void web_fill(struct buf *out, struct str page, struct str assets);

/* Add what a file below a folder of the disk has in it; waits for the disk.
 * ERR_NOT_FOUND: it is not there, is no plain file of a kind that is served,
 * or lies, by links or dots, outside the folder. ERR_LIMIT: too large. */
MUST_USE enum err web_read(const char *folder, struct str path,
                           struct buf *out);

#endif
