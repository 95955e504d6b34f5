	.file	"rust_tank.3dada92b7c7810ab-cgu.0"
	.file	1 "@examples@" "rust_tank.rs"
	.section	.text._RNvCs5ijn9WWGudX_9rust_tank5serve,"ax",@progbits
	.p2align	1
	.type	_RNvCs5ijn9WWGudX_9rust_tank5serve,@function
_RNvCs5ijn9WWGudX_9rust_tank5serve:
.Lfunc_begin0:
	.loc	1 44 0
	.cfi_sections .debug_frame
	.cfi_startproc
	li	a1, 2
.Ltmp0:
	.loc	1 45 5 prologue_end
	beq	a0, a1, .LBB0_3
.Ltmp1:
	.loc	1 0 5 is_stmt 0
	li	a1, 5
	.loc	1 45 5
	bne	a0, a1, .LBB0_4
.Ltmp2:
.Lpcrel_hi2:
	.loc	1 47 19 is_stmt 1
	auipc	a0, %pcrel_hi(_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK)
.Ltmp3:
	li	a1, 1
	addi	a0, a0, %pcrel_lo(.Lpcrel_hi2)
	li	a2, 45
	tail	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain
.Ltmp4:
.LBB0_3:
.Lpcrel_hi1:
	.loc	1 46 19
	auipc	a0, %pcrel_hi(_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK)
.Ltmp5:
	li	a1, 1
	addi	a0, a0, %pcrel_lo(.Lpcrel_hi1)
	li	a2, 30
	tail	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain
.Ltmp6:
.LBB0_4:
.Lpcrel_hi0:
	.loc	1 48 19
	auipc	a0, %pcrel_hi(_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK)
.Ltmp7:
	addi	a0, a0, %pcrel_lo(.Lpcrel_hi0)
	li	a1, 0
	tail	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain
.Ltmp8:
.Lfunc_end0:
	.size	_RNvCs5ijn9WWGudX_9rust_tank5serve, .Lfunc_end0-_RNvCs5ijn9WWGudX_9rust_tank5serve
	.cfi_endproc

	.section	.text._RNvCs5ijn9WWGudX_9rust_tank6report,"ax",@progbits
	.p2align	1
	.type	_RNvCs5ijn9WWGudX_9rust_tank6report,@function
_RNvCs5ijn9WWGudX_9rust_tank6report:
.Lfunc_begin1:
	.cfi_startproc
.Lpcrel_hi3:
	.loc	1 56 14 prologue_end
	auipc	a1, %pcrel_hi(_RNvCs5ijn9WWGudX_9rust_tank8REPORTED)
	sw	a0, %pcrel_lo(.Lpcrel_hi3)(a1)
	.loc	1 57 2
	ret
.Ltmp9:
.Lfunc_end1:
	.size	_RNvCs5ijn9WWGudX_9rust_tank6report, .Lfunc_end1-_RNvCs5ijn9WWGudX_9rust_tank6report
	.cfi_endproc

	.section	.text._RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill,"ax",@progbits
	.globl	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill
	.p2align	1
	.type	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill,@function
_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill:
.Lfunc_begin2:
	.cfi_startproc
	.loc	1 26 26 prologue_end
	lw	a2, 0(a0)
	.loc	1 26 13 is_stmt 0
	add	a1, a1, a2
.Ltmp10:
	sw	a1, 0(a0)
	.loc	1 27 10 is_stmt 1
	ret
.Ltmp11:
.Lfunc_end2:
	.size	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill, .Lfunc_end2-_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill
	.cfi_endproc

	.section	.text._RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain,"ax",@progbits
	.globl	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain
	.p2align	1
	.type	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain,@function
_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain:
.Lfunc_begin3:
	.cfi_startproc
	.loc	1 31 29 prologue_end
	lw	a3, 4(a0)
	.loc	1 31 13 is_stmt 0
	addi	a3, a3, 1
	.loc	1 32 26 is_stmt 1
	andi	a1, a1, 1
.Ltmp12:
	.loc	1 31 13
	sw	a3, 4(a0)
	.loc	1 0 0 is_stmt 0
	bnez	a1, .LBB3_2
.Ltmp13:
	li	a2, 1
.Ltmp14:
.LBB3_2:
	.loc	1 36 26 is_stmt 1
	lw	a1, 0(a0)
	.loc	1 36 13 is_stmt 0
	sub	a1, a1, a2
	sw	a1, 0(a0)
.Ltmp15:
	.loc	1 37 10 is_stmt 1
	ret
.Ltmp16:
.Lfunc_end3:
	.size	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain, .Lfunc_end3-_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain
	.cfi_endproc

	.section	.text.main,"ax",@progbits
	.globl	main
	.p2align	1
	.type	main,@function
main:
.Lfunc_begin4:
	.loc	1 60 0
	.cfi_startproc
	addi	sp, sp, -16
	.cfi_def_cfa_offset 16
	sd	ra, 8(sp)
	sd	s0, 0(sp)
	.cfi_offset ra, -8
	.cfi_offset s0, -16
.Lpcrel_hi4:
.Ltmp17:
	.loc	1 62 10 prologue_end
	auipc	s0, %pcrel_hi(_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK)
	addi	s0, s0, %pcrel_lo(.Lpcrel_hi4)
.Ltmp18:
	li	a1, 80
	mv	a0, s0
	call	_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill
.Ltmp19:
	.loc	1 65 9
	li	a0, 0
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp20:
	li	a0, 1
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp21:
	li	a0, 2
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp22:
	li	a0, 3
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp23:
	li	a0, 4
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp24:
	li	a0, 5
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp25:
	li	a0, 6
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp26:
	li	a0, 7
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp27:
	li	a0, 8
	call	_RNvCs5ijn9WWGudX_9rust_tank5serve
.Ltmp28:
	.loc	1 68 12
	lw	a0, 0(s0)
	.loc	1 68 5 is_stmt 0
	call	_RNvCs5ijn9WWGudX_9rust_tank6report
.Ltmp29:
	.loc	1 70 2 is_stmt 1
	li	a0, 0
	.loc	1 70 2 epilogue_begin is_stmt 0
	ld	ra, 8(sp)
	ld	s0, 0(sp)
.Ltmp30:
	.cfi_restore ra
	.cfi_restore s0
	addi	sp, sp, 16
	.cfi_def_cfa_offset 0
	ret
.Ltmp31:
.Lfunc_end4:
	.size	main, .Lfunc_end4-main
	.cfi_endproc

	.type	_RNvCs5ijn9WWGudX_9rust_tank8REPORTED,@object
	.section	.bss._RNvCs5ijn9WWGudX_9rust_tank8REPORTED,"aw",@nobits
	.globl	_RNvCs5ijn9WWGudX_9rust_tank8REPORTED
	.p2align	2, 0x0
_RNvCs5ijn9WWGudX_9rust_tank8REPORTED:
	.zero	4
	.size	_RNvCs5ijn9WWGudX_9rust_tank8REPORTED, 4

	.type	_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK,@object
	.section	.bss._RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK,"aw",@nobits
	.globl	_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK
	.p2align	2, 0x0
_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK:
	.zero	8
	.size	_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK, 8

	.section	.debug_loc,"",@progbits
.Ldebug_loc0:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp3-.Lfunc_begin0
	.half	1
	.byte	90
	.quad	.Ltmp3-.Lfunc_begin0
	.quad	.Ltmp4-.Lfunc_begin0
	.half	4
	.byte	243
	.byte	1
	.byte	90
	.byte	159
	.quad	.Ltmp4-.Lfunc_begin0
	.quad	.Ltmp5-.Lfunc_begin0
	.half	1
	.byte	90
	.quad	.Ltmp5-.Lfunc_begin0
	.quad	.Ltmp6-.Lfunc_begin0
	.half	4
	.byte	243
	.byte	1
	.byte	90
	.byte	159
	.quad	.Ltmp6-.Lfunc_begin0
	.quad	.Ltmp7-.Lfunc_begin0
	.half	1
	.byte	90
	.quad	.Ltmp7-.Lfunc_begin0
	.quad	.Lfunc_end0-.Lfunc_begin0
	.half	4
	.byte	243
	.byte	1
	.byte	90
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc1:
	.quad	-1
	.quad	.Lfunc_begin2
	.quad	.Lfunc_begin2-.Lfunc_begin2
	.quad	.Ltmp10-.Lfunc_begin2
	.half	1
	.byte	91
	.quad	.Ltmp10-.Lfunc_begin2
	.quad	.Lfunc_end2-.Lfunc_begin2
	.half	4
	.byte	243
	.byte	1
	.byte	91
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc2:
	.quad	-1
	.quad	.Lfunc_begin3
	.quad	.Lfunc_begin3-.Lfunc_begin3
	.quad	.Ltmp12-.Lfunc_begin3
	.half	6
	.byte	91
	.byte	147
	.byte	4
	.byte	92
	.byte	147
	.byte	4
	.quad	.Ltmp12-.Lfunc_begin3
	.quad	.Ltmp14-.Lfunc_begin3
	.half	5
	.byte	147
	.byte	4
	.byte	92
	.byte	147
	.byte	4
	.quad	0
	.quad	0
.Ldebug_loc3:
	.quad	-1
	.quad	.Lfunc_begin4
	.quad	.Ltmp18-.Lfunc_begin4
	.quad	.Ltmp30-.Lfunc_begin4
	.half	1
	.byte	88
	.quad	0
	.quad	0
.Ldebug_loc4:
	.quad	-1
	.quad	.Lfunc_begin4
	.quad	.Ltmp19-.Lfunc_begin4
	.quad	.Ltmp20-.Lfunc_begin4
	.half	2
	.byte	48
	.byte	159
	.quad	.Ltmp20-.Lfunc_begin4
	.quad	.Ltmp21-.Lfunc_begin4
	.half	2
	.byte	49
	.byte	159
	.quad	.Ltmp21-.Lfunc_begin4
	.quad	.Ltmp22-.Lfunc_begin4
	.half	2
	.byte	50
	.byte	159
	.quad	.Ltmp22-.Lfunc_begin4
	.quad	.Ltmp23-.Lfunc_begin4
	.half	2
	.byte	51
	.byte	159
	.quad	.Ltmp23-.Lfunc_begin4
	.quad	.Ltmp24-.Lfunc_begin4
	.half	2
	.byte	52
	.byte	159
	.quad	.Ltmp24-.Lfunc_begin4
	.quad	.Ltmp25-.Lfunc_begin4
	.half	2
	.byte	53
	.byte	159
	.quad	.Ltmp25-.Lfunc_begin4
	.quad	.Ltmp26-.Lfunc_begin4
	.half	2
	.byte	54
	.byte	159
	.quad	.Ltmp26-.Lfunc_begin4
	.quad	.Ltmp27-.Lfunc_begin4
	.half	2
	.byte	55
	.byte	159
	.quad	.Ltmp27-.Lfunc_begin4
	.quad	.Ltmp28-.Lfunc_begin4
	.half	2
	.byte	56
	.byte	159
	.quad	.Ltmp28-.Lfunc_begin4
	.quad	.Lfunc_end4-.Lfunc_begin4
	.half	2
	.byte	57
	.byte	159
	.quad	0
	.quad	0
	.section	.debug_abbrev,"",@progbits
	.byte	1
	.byte	17
	.byte	1
	.byte	37
	.byte	14
	.byte	19
	.byte	5
	.byte	3
	.byte	14
	.byte	16
	.byte	23
	.byte	27
	.byte	14
	.byte	17
	.byte	1
	.byte	85
	.byte	23
	.byte	0
	.byte	0
	.byte	2
	.byte	57
	.byte	1
	.byte	3
	.byte	14
	.byte	0
	.byte	0
	.byte	3
	.byte	52
	.byte	0
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	63
	.byte	25
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.ascii	"\210\001"
	.byte	15
	.byte	2
	.byte	24
	.byte	110
	.byte	14
	.byte	0
	.byte	0
	.byte	4
	.byte	19
	.byte	1
	.byte	3
	.byte	14
	.byte	11
	.byte	11
	.byte	50
	.byte	11
	.ascii	"\210\001"
	.byte	15
	.byte	0
	.byte	0
	.byte	5
	.byte	13
	.byte	0
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.ascii	"\210\001"
	.byte	15
	.byte	56
	.byte	11
	.byte	50
	.byte	11
	.byte	0
	.byte	0
	.byte	6
	.byte	46
	.byte	1
	.byte	110
	.byte	14
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	60
	.byte	25
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	7
	.byte	5
	.byte	0
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	8
	.byte	51
	.byte	1
	.byte	21
	.byte	19
	.byte	0
	.byte	0
	.byte	9
	.byte	13
	.byte	0
	.byte	73
	.byte	19
	.ascii	"\210\001"
	.byte	15
	.byte	56
	.byte	11
	.byte	52
	.byte	25
	.byte	0
	.byte	0
	.byte	10
	.byte	25
	.byte	1
	.byte	22
	.byte	11
	.byte	0
	.byte	0
	.byte	11
	.byte	13
	.byte	0
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.ascii	"\210\001"
	.byte	15
	.byte	56
	.byte	11
	.byte	0
	.byte	0
	.byte	12
	.byte	19
	.byte	0
	.byte	3
	.byte	14
	.byte	11
	.byte	11
	.byte	50
	.byte	11
	.ascii	"\210\001"
	.byte	15
	.byte	0
	.byte	0
	.byte	13
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	110
	.byte	14
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	54
	.byte	11
	.byte	0
	.byte	0
	.byte	14
	.byte	5
	.byte	0
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	15
	.byte	5
	.byte	0
	.byte	2
	.byte	23
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	16
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	110
	.byte	14
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	0
	.byte	0
	.byte	17
	.byte	5
	.byte	0
	.byte	2
	.byte	24
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	18
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	3
	.byte	14
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	19
	.byte	11
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	0
	.byte	0
	.byte	20
	.byte	52
	.byte	0
	.byte	2
	.byte	23
	.byte	3
	.byte	14
	.ascii	"\210\001"
	.byte	15
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	21
	.byte	36
	.byte	0
	.byte	3
	.byte	14
	.byte	62
	.byte	11
	.byte	11
	.byte	11
	.byte	0
	.byte	0
	.byte	22
	.byte	15
	.byte	0
	.byte	73
	.byte	19
	.byte	3
	.byte	14
	.byte	51
	.byte	6
	.byte	0
	.byte	0
	.byte	23
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	71
	.byte	19
	.byte	0
	.byte	0
	.byte	24
	.byte	52
	.byte	0
	.byte	2
	.byte	24
	.byte	3
	.byte	14
	.ascii	"\210\001"
	.byte	15
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	0
	.section	.debug_info,"",@progbits
.Lcu_begin0:
	.word	.Ldebug_info_end0-.Ldebug_info_start0
.Ldebug_info_start0:
	.half	4
	.word	.debug_abbrev
	.byte	8
	.byte	1
	.word	.Linfo_string0
	.half	28
	.word	.Linfo_string1
	.word	.Lline_table_start0
	.word	.Linfo_string2
	.quad	0
	.word	.Ldebug_ranges0
	.byte	2
	.word	.Linfo_string3
	.byte	3
	.word	.Linfo_string4
	.word	440

	.byte	1
	.byte	52
	.byte	4
	.byte	9
	.byte	3
	.quad	_RNvCs5ijn9WWGudX_9rust_tank8REPORTED
	.word	.Linfo_string6
	.byte	2
	.word	.Linfo_string7
	.byte	3
	.word	.Linfo_string8
	.word	104

	.byte	1
	.byte	40
	.byte	4
	.byte	9
	.byte	3
	.quad	_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK
	.word	.Linfo_string12
	.byte	4
	.word	.Linfo_string11
	.byte	8
	.byte	1
	.byte	4
	.byte	5
	.word	.Linfo_string9
	.word	440
	.byte	4
	.byte	0
	.byte	1
	.byte	5
	.word	.Linfo_string10
	.word	440
	.byte	4
	.byte	4
	.byte	1
	.byte	6
	.word	.Linfo_string13
	.word	.Linfo_string14
	.byte	1
	.byte	25


	.byte	7
	.word	447
	.byte	7
	.word	440
	.byte	0
	.byte	6
	.word	.Linfo_string16
	.word	.Linfo_string17
	.byte	1
	.byte	30


	.byte	7
	.word	447
	.byte	7
	.word	181
	.byte	0
	.byte	0
	.byte	4
	.word	.Linfo_string21
	.byte	8
	.byte	1
	.byte	4
	.byte	8
	.word	194
	.byte	9
	.word	440
	.byte	4
	.byte	0

	.byte	10
	.byte	0
	.byte	11
	.word	.Linfo_string18
	.word	230
	.byte	4
	.byte	0
	.byte	0
	.byte	10
	.byte	1
	.byte	11
	.word	.Linfo_string19
	.word	238
	.byte	4
	.byte	0
	.byte	0
	.byte	0
	.byte	12
	.word	.Linfo_string18
	.byte	8
	.byte	1
	.byte	4
	.byte	4
	.word	.Linfo_string19
	.byte	8
	.byte	1
	.byte	4
	.byte	5
	.word	.Linfo_string20
	.word	440
	.byte	4
	.byte	4
	.byte	1
	.byte	0
	.byte	0
	.byte	0
	.byte	13
	.quad	.Lfunc_begin0
	.word	.Lfunc_end0-.Lfunc_begin0
	.byte	1
	.byte	82
	.word	.Linfo_string22
	.word	.Linfo_string23
	.byte	1
	.byte	44
	.byte	3
	.byte	14
	.word	.Linfo_string7
	.byte	1
	.byte	44
	.word	447
	.byte	15
	.word	.Ldebug_loc0
	.word	.Linfo_string27
	.byte	1
	.byte	44
	.word	440
	.byte	0
	.byte	16
	.quad	.Lfunc_begin1
	.word	.Lfunc_end1-.Lfunc_begin1
	.byte	1
	.byte	82
	.word	.Linfo_string24
	.word	.Linfo_string25
	.byte	1
	.byte	55
	.byte	17
	.byte	1
	.byte	90
	.word	.Linfo_string9
	.byte	1
	.byte	55
	.word	440
	.byte	0
	.byte	18
	.quad	.Lfunc_begin4
	.word	.Lfunc_end4-.Lfunc_begin4
	.byte	1
	.byte	82
	.word	.Linfo_string26
	.byte	1
	.byte	60
	.word	440

	.byte	19
	.quad	.Ltmp17
	.word	.Ltmp29-.Ltmp17
	.byte	20
	.word	.Ldebug_loc3
	.word	.Linfo_string7
	.byte	8
	.byte	1
	.byte	61
	.word	447
	.byte	19
	.quad	.Ltmp19
	.word	.Ltmp29-.Ltmp19
	.byte	20
	.word	.Ldebug_loc4
	.word	.Linfo_string27
	.byte	4
	.byte	1
	.byte	63
	.word	440
	.byte	0
	.byte	0
	.byte	0
	.byte	0
	.byte	21
	.word	.Linfo_string5
	.byte	7
	.byte	4
	.byte	22
	.word	104
	.word	.Linfo_string15
	.word	0
	.byte	23
	.quad	.Lfunc_begin2
	.word	.Lfunc_end2-.Lfunc_begin2
	.byte	1
	.byte	82
	.word	136
	.byte	17
	.byte	1
	.byte	90
	.word	.Linfo_string28
	.byte	1
	.byte	25
	.word	447
	.byte	15
	.word	.Ldebug_loc1
	.word	.Linfo_string29
	.byte	1
	.byte	25
	.word	440
	.byte	0
	.byte	23
	.quad	.Lfunc_begin3
	.word	.Lfunc_end3-.Lfunc_begin3
	.byte	1
	.byte	82
	.word	158
	.byte	17
	.byte	1
	.byte	90
	.word	.Linfo_string28
	.byte	1
	.byte	30
	.word	447
	.byte	15
	.word	.Ldebug_loc2
	.word	.Linfo_string30
	.byte	1
	.byte	30
	.word	181
	.byte	19
	.quad	.Ltmp14
	.word	.Ltmp15-.Ltmp14
	.byte	24
	.byte	1
	.byte	92
	.word	.Linfo_string29
	.byte	4
	.byte	1
	.byte	32
	.word	440
	.byte	0
	.byte	0
	.byte	0
.Ldebug_info_end0:
	.section	.bss._RNvCs5ijn9WWGudX_9rust_tank8REPORTED,"aw",@nobits
.Lsec_end0:
	.section	.bss._RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK,"aw",@nobits
.Lsec_end1:
	.section	.text._RNvCs5ijn9WWGudX_9rust_tank5serve,"ax",@progbits
.Lsec_end2:
	.section	.text._RNvCs5ijn9WWGudX_9rust_tank6report,"ax",@progbits
.Lsec_end3:
	.section	.text._RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill,"ax",@progbits
.Lsec_end4:
	.section	.text._RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain,"ax",@progbits
.Lsec_end5:
	.section	.text.main,"ax",@progbits
.Lsec_end6:
	.section	.debug_aranges,"",@progbits
	.word	140
	.half	2
	.word	.Lcu_begin0
	.byte	8
	.byte	0
	.zero	4,255
	.quad	_RNvCs5ijn9WWGudX_9rust_tank8REPORTED
	.quad	.Lsec_end0-_RNvCs5ijn9WWGudX_9rust_tank8REPORTED
	.quad	_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK
	.quad	.Lsec_end1-_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK
	.quad	.Lfunc_begin0
	.quad	.Lsec_end2-.Lfunc_begin0
	.quad	.Lfunc_begin1
	.quad	.Lsec_end3-.Lfunc_begin1
	.quad	.Lfunc_begin2
	.quad	.Lsec_end4-.Lfunc_begin2
	.quad	.Lfunc_begin3
	.quad	.Lsec_end5-.Lfunc_begin3
	.quad	.Lfunc_begin4
	.quad	.Lsec_end6-.Lfunc_begin4
	.quad	0
	.quad	0
	.section	.debug_ranges,"",@progbits
.Ldebug_ranges0:
	.quad	.Lfunc_begin0
	.quad	.Lfunc_end0
	.quad	.Lfunc_begin1
	.quad	.Lfunc_end1
	.quad	.Lfunc_begin2
	.quad	.Lfunc_end2
	.quad	.Lfunc_begin3
	.quad	.Lfunc_end3
	.quad	.Lfunc_begin4
	.quad	.Lfunc_end4
	.quad	0
	.quad	0
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.asciz	"clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))"
.Linfo_string1:
	.asciz	"rust_tank.rs/@/rust_tank.3dada92b7c7810ab-cgu.0"
.Linfo_string2:
	.asciz	"@examples@"
.Linfo_string3:
	.asciz	"rust_tank"
.Linfo_string4:
	.asciz	"REPORTED"
.Linfo_string5:
	.asciz	"u32"
.Linfo_string6:
	.asciz	"_RNvCs5ijn9WWGudX_9rust_tank8REPORTED"
.Linfo_string7:
	.asciz	"tank"
.Linfo_string8:
	.asciz	"TANK"
.Linfo_string9:
	.asciz	"level"
.Linfo_string10:
	.asciz	"requests"
.Linfo_string11:
	.asciz	"Tank"
.Linfo_string12:
	.asciz	"_RNvNtCs5ijn9WWGudX_9rust_tank4tank4TANK"
.Linfo_string13:
	.asciz	"_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank4fill"
.Linfo_string14:
	.asciz	"fill"
.Linfo_string15:
	.asciz	"&mut rust_tank::tank::Tank"
.Linfo_string16:
	.asciz	"_RNvMNtCs5ijn9WWGudX_9rust_tank4tankNtB2_4Tank5drain"
.Linfo_string17:
	.asciz	"drain"
.Linfo_string18:
	.asciz	"Litre"
.Linfo_string19:
	.asciz	"Litres"
.Linfo_string20:
	.asciz	"__0"
.Linfo_string21:
	.asciz	"Request"
.Linfo_string22:
	.asciz	"_RNvCs5ijn9WWGudX_9rust_tank5serve"
.Linfo_string23:
	.asciz	"serve"
.Linfo_string24:
	.asciz	"_RNvCs5ijn9WWGudX_9rust_tank6report"
.Linfo_string25:
	.asciz	"report"
.Linfo_string26:
	.asciz	"main"
.Linfo_string27:
	.asciz	"customer"
.Linfo_string28:
	.asciz	"self"
.Linfo_string29:
	.asciz	"litres"
.Linfo_string30:
	.asciz	"request"
	.ident	"rustc version 1.95.0 (59807616e 2026-04-14)"
	.section	".note.GNU-stack","",@progbits
	.section	.debug_line,"",@progbits
.Lline_table_start0:
