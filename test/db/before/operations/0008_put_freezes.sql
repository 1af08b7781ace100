CREATE TABLE "operations"."calendar_entries" (
	"freeze_id" text PRIMARY KEY NOT NULL,
	"entry" jsonb NOT NULL,
	"withdrawn" boolean DEFAULT false NOT NULL,
	"put_by" text NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"told_revision" integer DEFAULT 0 NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
