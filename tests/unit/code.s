# SPDX-License-Identifier: MIT
# x86-64. The GIL's functions as compilers make them, for test-code.c.

.macro function name
\name:
	.cfi_startproc
.endm
.macro public name
	.globl \name
	function \name
.endm
.macro end
	.cfi_endproc
.endm

# What take_gil does between its entry and its last unlocking, for the GIL at 0x10(arg1).
.macro take
	endbr64
	sub $0x18, %rsp
	mov 0x10(%rdi), %rbx
	lea 0x50(%rbx), %rdi
	call pthread_mutex_lock@PLT
1:	lea 0x20(%rbx), %rdi
	lea 0x50(%rbx), %rsi
	mov %rsp, %rdx
	call pthread_cond_timedwait@PLT
	cmpl $0, 0x10(%rbx)
	jne 1b
	lea 0x78(%rbx), %rdi
	call pthread_cond_signal@PLT
	lea 0x50(%rbx), %rdi
	call pthread_mutex_unlock@PLT
	test %eax, %eax
	jne fatal
.endm

# A release of the GIL at %rbx, up to what is done with the result of the signal.
.macro release
	lea 0x50(%rbx), %rdi
	call pthread_mutex_lock@PLT
	movl $0, 0x10(%rbx)
	lea 0x20(%rbx), %rdi
	call pthread_cond_signal@PLT
.endm

	.text
function fatal
	call abort@PLT
end

function take_gil
	take
	add $0x18, %rsp
	ret
end

# With a second way out, on which something else is called.
function take_gil2
	take
	test %rbx, %rbx
	je 2f
	add $0x18, %rsp
	ret
2:	call getpid@PLT
	add $0x18, %rsp
	ret
end

# With two calls of pthread_cond_signal, made from one.
function drop_gil
	push %rbx
	mov 0x10(%rdi), %rbx
	test %esi, %esi
	je 1f
	release
	pop %rbx
	ret
1:	release
	pop %rbx
	ret
end

# What BOLT leaves of a function that it moved.
function left_behind
	jmp.d32 drop_gil
	mov 0x10(%rdi), %rbx
	release
	pop %rbx
	ret
end

# Of a library linked in: a condition variable at another distance from its mutex, and a wrapper.
function other_lock
	push %rbx
	mov %rdi, %rbx
	lea 8(%rbx), %rdi
	call pthread_mutex_lock@PLT
	lea 0x30(%rbx), %rdi
	call pthread_cond_signal@PLT
	pop %rbx
	ret
end

function wrapper
	push %rbp
	mov %rsp, %rbp
	pop %rbp
	jmp pthread_cond_signal@PLT
end

public PyEval_RestoreThread
	push %rbx
	call take_gil
	pop %rbx
	ret
end

public PyEval_AcquireThread
	push %rbx
	call take_gil
	pop %rbx
	ret
end

public PyOS_AfterFork_Child
	push %rbx
	call take_gil2
	pop %rbx
	ret
end

public loop
	push %rbx
	mov %rdi, %rbx
	mov %rsi, %r12
	call drop_gil
	mov %rbx, %rdi
	mov %r12, %rsi
	call take_gil2
	pop %rbx
	ret
end

# Comes to a part of it that was moved away, and back.
public writes
	push %rbx
	mov 0x10(%rdi), %rbx
	mov 0x10(%rbx), %rbx
	test %esi, %esi
	jne again
back:	pop %rbx
	ret
end

	.section .text.unlikely, "ax"
	.cfi_startproc
	test %edi, %edi
	je back
	call fatal
again:	call getpid@PLT
	release
	jmp back
	.cfi_endproc
