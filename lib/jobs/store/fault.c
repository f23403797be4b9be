/* Why a store cannot write. */

#include "lib/jobs/store/fault.h"

#include <stdio.h>
#include <string.h>

void ww_store_fault_init(struct store_fault *fault)
{
	pthread_mutex_init(&fault->lock, NULL);
	fault->error = WW_OK;
	fault->text[0] = 0;
}

void ww_store_fault_destroy(struct store_fault *fault)
{
	pthread_mutex_destroy(&fault->lock);
}

int ww_store_fault_sync(struct store_fault *fault, const char *file, int error)
{
	pthread_mutex_lock(&fault->lock);
	if (fault->error != WW_EIO) {
		(void)snprintf(fault->text, sizeof fault->text, "%s could not be synced: %s", file, strerror(error));
		fault->error = WW_EIO;
	}
	pthread_mutex_unlock(&fault->lock);
	return WW_EIO;
}

int ww_store_fault_damage(struct store_fault *fault, const char *file)
{
	pthread_mutex_lock(&fault->lock);
	if (fault->error != WW_EIO && fault->error != WW_ECORRUPT) {
		(void)snprintf(fault->text, sizeof fault->text, "%s/index.db has a damaged page", file);
		fault->error = WW_ECORRUPT;
	}
	pthread_mutex_unlock(&fault->lock);
	return WW_ECORRUPT;
}

void ww_store_fault_full(struct store_fault *fault, const char *text)
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

int ww_store_fault_is_final(const struct store_fault *fault)
{
	return fault->error == WW_EIO;
}

int ww_store_fault_final(const struct store_fault *fault)
{
	int error = fault->error;

	return error == WW_EFULL ? WW_OK : error;
}

int ww_store_fault_tell(struct store_fault *fault, char text[WW_FAULT_MAX])
{
	if (!text)
		return fault->error;
	pthread_mutex_lock(&fault->lock);
	int error = fault->error;
	memcpy(text, fault->text, WW_FAULT_MAX);
	pthread_mutex_unlock(&fault->lock);
	return error;
}
