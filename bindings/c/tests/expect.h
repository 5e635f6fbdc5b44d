/* Conditions that must hold. Every line where one does not is printed. */
#ifndef MEMPLAN_EXPECT_H
#define MEMPLAN_EXPECT_H

#include <stdio.h>
#include <string.h>

#include "memplan.h"

static int failures = 0;

#define EXPECT(condition)                                             \
    do {                                                              \
        if (!(condition)) {                                           \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                               \
        }                                                             \
    } while (0)

static int said(const char *words) {
    char message[512];
    size_t length = memplan_last_error(message, sizeof message);
    int found = strstr(message, words) != NULL && length == strlen(message);
    if (!found) printf("the message is: %s\n", message);
    return found;
}

static int finish(void) {
    if (failures == 0) printf("all as promised\n");
    return failures != 0;
}

#endif
