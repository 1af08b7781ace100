CREATE SCHEMA "credential";
--> statement-breakpoint
CREATE TABLE "credential"."credentials" (
	"user_id" uuid PRIMARY KEY NOT NULL,
	"password_hash" text NOT NULL,
	"version" integer NOT NULL,
	"change_id" text NOT NULL,
	"changed_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "credential"."enrolment_tokens" (
	"token_id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"change_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone,
	"used_by" text,
	CONSTRAINT "enrolment_tokens_change_id_unique" UNIQUE("change_id")
);
--> statement-breakpoint
CREATE TABLE "credential"."outbox" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "credential"."outbox_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" uuid NOT NULL,
	"agg_type" text NOT NULL,
	"agg_id" text NOT NULL,
	"agg_version" bigint NOT NULL,
	"type" text NOT NULL,
	"schema_version" integer DEFAULT 1 NOT NULL,
	"payload" jsonb NOT NULL,
	"request_id" text,
	"trace" text,
	"occurred_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"pub_seq" bigint,
	"js_seq" bigint,
	"published_at" timestamp with time zone,
	"parked" text,
	CONSTRAINT "outbox_event_id_unique" UNIQUE("event_id"),
	CONSTRAINT "outbox_pub_seq_unique" UNIQUE("pub_seq"),
	CONSTRAINT "outbox_agg_type_agg_id_agg_version_unique" UNIQUE("agg_type","agg_id","agg_version")
);
--> statement-breakpoint
CREATE TABLE "credential"."relay_state" (
	"name" text PRIMARY KEY NOT NULL,
	"epoch" bigint DEFAULT 0 NOT NULL,
	"next" bigint DEFAULT 1 NOT NULL,
	"stream_created" text,
	"js_last_seq" bigint
);
--> statement-breakpoint
CREATE INDEX "enrolment_tokens_user_id_index" ON "credential"."enrolment_tokens" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "enrolment_tokens_expires_at_index" ON "credential"."enrolment_tokens" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "outbox_id_index" ON "credential"."outbox" USING btree ("id") WHERE pub_seq is null;--> statement-breakpoint
CREATE INDEX "outbox_pub_seq_index" ON "credential"."outbox" USING btree ("pub_seq") WHERE published_at is null and pub_seq is not null;