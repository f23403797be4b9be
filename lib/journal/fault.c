/* Why a store cannot write. */

#include "lib/journal/fault.h"

#include <stdio.h>
#include <string.h>

void ww_fault_init(struct journal_fault *fault)
{
	pthread_mutex_init(&fault->lock, NULL);
	fault->error = WW_OK;
	fault->text[0] = 0;
}

void ww_fault_destroy(struct journal_fault *fault)
{
	pthread_mutex_destroy(&fault->lock);
}

int ww_fault_sync(struct journal_fault *fault, const char *file, int error)
{
	pthread_mutex_lock(&fault->lock);
	if (fault->error != WW_EIO) {
		(void)snprintf(fault->text, sizeof fault->text, "%s could not be synced: %s", file, strerror(error));
		fault->error = WW_EIO;
	}
	pthread_mutex_unlock(&fault->lock);
	return WW_EIO;
}

int ww_fault_damage(struct journal_fault *fault, const char *text)
{
	pthread_mutex_lock(&fault->lock);
	if (fault->error != WW_EIO && fault->error != WW_ECORRUPT) {
		(void)snprintf(fault->text, sizeof fault->text, "%s", text);
		fault->error = WW_ECORRUPT;
	}
	pthread_mutex_unlock(&fault->lock);
	return WW_ECORRUPT;
}

void ww_fault_full(struct journal_fault *fault, const char *text)
{
	if (!text && fault->error == WW_OK)
		return;
	pthread_mutex_lock(&fault->lock);
	if (fault->error != WW_EIO && fault->error != WW_ECORRUPT) {
		(void)snprintf(fault->text, sizeof fault->text, "%s", text ? text : "");
		fault->error = text ? WW_EFULL : WW_OK;
	}
	pthread_mutex_unlock(&fault->lock);
}

int ww_fault_is_final(const struct journal_fault *fault)
{
	return fault->error == WW_EIO;
}

int ww_fault_final(const struct journal_fault *fault)
{
	int error = fault->error;

	return error == WW_EFULL ? WW_OK : error;
}

int ww_fault_describe(struct journal_fault *fault, char text[FAULT_TEXT])
{
	if (!text)
		return fault->error;
	pthread_mutex_lock(&fault->lock);
	int error = fault->error;
	memcpy(text, fault->text, FAULT_TEXT);
	pthread_mutex_unlock(&fault->lock);
	return error;
}
