#ifndef MODEL_KEYWORD_H
#define MODEL_KEYWORD_H

/* keyword: whether a routing keyword occurs in a text.
 *
 * It must occur as whole words, ignoring case and accents: both texts are split
 * by base/words, and the words of the keyword must be adjacent in the text. A
 * punctuation sign is a word of its own, so "C++" is found in "my c++ code",
 * and "blog post" is not found in "blog: post". A keyword without a letter or
 * digit never occurs.
 *
 * Pure. Threads: any. */

#include "base/buf.h"
#include "model/agent.h"

/* Append the words of a text in lower case, each followed by a space. True if
 * any of them is more than punctuation. */
bool keyword_plain(struct buf *out, struct str text);

/* The first keyword that occurs in the text, pointing into the list; empty if
 * none does. */
struct str keyword_find(struct strs keywords, struct str text);

/* Whether a lower-case word is one that people use with every agent. */
bool keyword_is_everyday(struct str word);

#endif
