#ifndef BASE_XOR_H
#define BASE_XOR_H

/* xor: bytes XORed with four that repeat, as WebSocket masks its frames.
 * Threads: any; nothing here keeps state. */

#include <stddef.h>
#include <stdint.h>

/* XOR n bytes of `from` into `to`, the first with key[at & 3]. `to` may be
 * `from`, or lie anywhere before it; it may not lie behind it and overlap. With
 * the widest vectors that this processor has. */
void xor_four(char *to, const char *from, size_t n, const uint8_t key[4],
              size_t at);

/* The same byte by byte, and with each kind of vector for itself: for tests.
 * xor_four_wide is to be called only where xor_is_wide(). */
void xor_four_plain(char *to, const char *from, size_t n, const uint8_t key[4],
                    size_t at);
void xor_four_narrow(char *to, const char *from, size_t n, const uint8_t key[4],
                     size_t at);
void xor_four_wide(char *to, const char *from, size_t n, const uint8_t key[4],
                   size_t at);
int xor_is_wide(void);

#endif
