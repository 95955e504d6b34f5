/* A file and a function whose names others have, too. */
static int helper(void)
{
    return 7;
}

int same_name_elsewhere(void)
{
    return helper() + helper();
}
