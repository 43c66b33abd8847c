#ifndef BASE_XOR_H
#define BASE_XOR_H

/* xor: XOR with a repeating four-byte key, as WebSocket masks its frames.
 * Threads: any; no state. */

#include <stddef.h>
#include <stdint.h>

/* XOR n bytes of `from` into `to`, the first with key[at & 3], with the widest
 * vectors of this processor. `to` may equal `from` or lie anywhere before it;
 * it must not overlap behind it. */
void xor_four(char *to, const char *from, size_t n, const uint8_t key[4],
              size_t at);

/* For tests: byte by byte, and each vector width alone. Call xor_four_wide only
 * if xor_is_wide(). */
void xor_four_plain(char *to, const char *from, size_t n, const uint8_t key[4],
                    size_t at);
void xor_four_narrow(char *to, const char *from, size_t n, const uint8_t key[4],
                     size_t at);
void xor_four_wide(char *to, const char *from, size_t n, const uint8_t key[4],
                   size_t at);
int xor_is_wide(void);

#endif
