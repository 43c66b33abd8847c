#include "test/lib/index_stage.h"

TEST(todo)
{
}
