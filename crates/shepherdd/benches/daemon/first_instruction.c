/* Appends the time since boot to the file that the argument names, as eight bytes, and waits. Without a C library,
 * whose start would be measured as well. */

static long call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long n __asm__("x8") = number, r __asm__("x0") = a, s __asm__("x1") = b, t __asm__("x2") = c, u __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(r) : "r"(n), "r"(s), "r"(t), "r"(u) : "memory");
    return r;
#endif
}

#if defined(__x86_64__)
enum { WRITE = 1, PAUSE = 34, CLOCK_GETTIME = 228, OPENAT = 257 };
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall begin\n");
#elif defined(__aarch64__)
enum { WRITE = 64, PAUSE = 73, CLOCK_GETTIME = 113, OPENAT = 56 }; /* PAUSE: ppoll of nothing */
__asm__(".globl _start\n_start: mov x0, sp\nbl begin\n");
#endif

enum { BOOTTIME = 7, HERE = -100, WRITE_CREATE_APPEND = 02101 };

void begin(long *stack)
{
    long time[2];
    call(CLOCK_GETTIME, BOOTTIME, (long)time, 0, 0);
    long nanoseconds = time[0] * 1000000000 + time[1];
    long file = call(OPENAT, HERE, stack[2], WRITE_CREATE_APPEND, 0600);
    call(WRITE, file, (long)&nanoseconds, sizeof nanoseconds, 0);
    for (;;)
        call(PAUSE, 0, 0, 0, 0);
}
