/* The body of a job that a pusher sends, and the signature that its receiver expects. */
#include <stdio.h>
#include <string.h>
#include <weekwheel/callback.h>

int main(void)
{
	const char *text = "POST https://example.org/hook\n"
	                   "Content-Type: text/plain\n"
	                   "\n"
	                   "hello";
	struct ww_callback_request request;
	struct ww_callback_problem problem;
	char signature[WW_CALLBACK_SIGNATURE_SIZE];

	if (ww_callback_parse(text, strlen(text), &request, &problem)) {
		fprintf(stderr, "line %zu: %s\n", problem.line, problem.reason);
		return 1;
	}
	if (ww_callback_sign(
	        "secret", 6, 1700000000, 7, 9, &request, signature)) /* time, id and token of the delivery */
		return 1;
	printf("Weekwheel-Signature: %s\n", signature);
	return 0;
}
